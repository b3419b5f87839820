"""The fingerprint must name emulated arithmetics, whatever the order of their sums."""

import pytest
import torch

from gelu_verify import contracts, formats
from gelu_verify.checks.fused import FusedCase, arithmetic_probes, fingerprint
from gelu_verify.formats import tensors
from gelu_verify.job import Job
from gelu_verify.kernels.spec import Declared, KernelSpec
from gelu_verify.kernels.subject import Callee
from gelu_verify.records import FindingStatus
from tests import emulated

_SHORT = (1, 31, 33, 64, 130)


def _case(function, name, depth="standard", **declared):
    spec = KernelSpec(
        name="k.py:f", target="k.py:f", operator="linear_gelu", arithmetic=Declared(**declared)
    )
    job = Job(
        spec=spec,
        operator="linear_gelu",
        formula="erf",
        format=name,
        contract=contracts.get("cancelling"),
        depth=depth,
    )
    return FusedCase(job, Callee("f", "erf", formats.get(name), torch.device("cpu"), function))


def _found(product, name, lengths=_SHORT):
    fmt = formats.get(name)
    dtype = tensors.dtype(fmt)
    kernel = emulated.linear_gelu(product)

    def multiply(left, right):
        zeros = torch.zeros(right.shape[0], dtype=dtype)
        return kernel(left.to(dtype), right.to(dtype), zeros).double()

    readings = [arithmetic_probes.read(multiply, fmt, k) for k in lengths]
    return fingerprint.fingerprint(readings, fmt)


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize(
    ("product", "behaves_like", "rounding"),
    [
        (emulated.sequential(sums="fp32"), "fp32_accumulation", "nearest"),
        (emulated.in_lanes(16), "fp32_accumulation", "nearest"),
        (emulated.in_blocks(64, "fp32"), "fp32_accumulation", "nearest"),
        (emulated.pairwise(), "fp32_accumulation", "nearest"),
        (emulated.tensor_core(8), "fp32_accumulation", "truncated"),
        (emulated.tensor_core(16, extra=2), "fp32_accumulation", "truncated"),
        (emulated.sequential(sums="fp64"), "fp64_accumulation", "unknown"),
        (emulated.sequential(sums="bf16"), "bf16_partial_sums", "nearest"),
        (emulated.sequential(sums="fp16"), "fp16_partial_sums", "nearest"),
        (emulated.in_lanes(16, "bf16"), "bf16_partial_sums", "nearest"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_sums_are_named_when_emulated(name, product, behaves_like, rounding):
    found = _found(product, name)
    assert (found.behaves_like, found.rounding) == (behaves_like, rounding)
    assert found.products in (name, "indistinguishable")


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("sums", ["bf16", "fp16"])
@pytest.mark.parametrize("block", [1, 2, 16, 32, 64, 128])
def test_block_length_is_seen_when_partial_sums_are_narrow(name, sums, block):
    found = _found(emulated.in_blocks(block, sums), name, (1, 33, 64, 200))
    assert (found.behaves_like, found.block) == (f"{sums}_partial_sums", block)
    hidden = block == 1 and formats.get(name).precision > formats.get(sums).precision
    assert found.products == ("indistinguishable" if hidden else name)


@pytest.mark.parametrize("order", [emulated.sequential, None], ids=["sequential", "tensor core"])
@pytest.mark.parametrize("products", ["tf32", "fp16", "bf16"])
def test_products_are_named_when_fp32_inputs_are_rounded(order, products):
    product = order(products) if order else emulated.tensor_core(8, products)
    found = _found(product, "fp32")
    assert (found.behaves_like, found.products) == (f"{products}_products", products)
    assert found.sums == "fp32"


def test_products_are_named_when_16_bit_inputs_are_rounded():
    assert _found(emulated.sequential("bf16"), "fp16").behaves_like == "bf16_products"
    assert _found(emulated.sequential("fp16"), "bf16").behaves_like == "fp16_products"


def test_products_are_named_when_only_the_weight_is_rounded():
    plain = emulated.sequential()

    def product(left, right):
        return plain(left, emulated.rounded(right, "tf32"))

    assert _found(product, "fp32").behaves_like == "tf32_products"


def test_split_sums_are_seen_when_their_parts_are_rounded():
    def product(left, right):
        half = -(-left.shape[1] // 2)
        return emulated.in_blocks(half, "bf16")(left, right)

    found = _found(product, "bf16", (33, 512))
    assert (found.behaves_like, found.block) == ("bf16_partial_sums", 256)


def test_a_long_sum_counts_when_a_short_one_is_sound():
    plain, narrow = emulated.sequential(), emulated.in_blocks(32, "bf16")

    def product(left, right):
        return (narrow if left.shape[1] > 256 else plain)(left, right)

    assert _found(product, "bf16", (1, 33, 300)).behaves_like == "bf16_partial_sums"
    assert _found(product, "bf16", (1, 33, 64)).behaves_like == "fp32_accumulation"


@pytest.mark.parametrize("name", ["fp32", "fp64"])
def test_fp64_is_named_in_its_own_format(name):
    found = _found(emulated.sequential(sums=name), "fp64", (1, 33))
    assert found.behaves_like == f"{name}_accumulation"


@pytest.mark.parametrize(
    ("product", "name", "declared"),
    [
        (emulated.sequential("tf32"), "fp32", {"products": "tf32"}),
        (emulated.tensor_core(8, "bf16"), "fp32", {"products": "bf16"}),
        (emulated.sequential("fp16"), "bf16", {"products": "fp16"}),
        (emulated.in_blocks(32, "bf16"), "bf16", {"accumulate": "bf16"}),
        (emulated.sequential(sums="fp16"), "fp16", {"accumulate": "fp16"}),
        (emulated.sequential(sums="fp32"), "fp64", {"accumulate": "fp32"}),
    ],
)
def test_narrow_arithmetic_fails_unless_declared(product, name, declared):
    kernel = emulated.linear_gelu(product)
    (found,) = fingerprint.run(_case(kernel, name, "quick")).findings
    assert found.status is FindingStatus.FAILED
    assert next(iter(declared.values())) in found.message
    (found,) = fingerprint.run(_case(kernel, name, "quick", **declared)).findings
    assert found.status is FindingStatus.PASSED, found.message


def test_nothing_is_claimed_when_nothing_shows():
    def kernel(x, weight, bias):
        return torch.zeros(x.shape[0], weight.shape[0], dtype=x.dtype)

    outcome = fingerprint.run(_case(kernel, "fp32", "quick"))
    assert outcome.findings[0].status is FindingStatus.NOTED
    assert outcome.fields["fingerprint"].behaves_like == "indistinguishable"


def test_few_bits_have_no_name_when_no_format_has_them():
    found = _found(emulated.in_bits(14), "bf16")
    assert (found.behaves_like, found.sums) == ("other", "other")
    kernel = emulated.linear_gelu(emulated.in_bits(14))
    (finding,) = fingerprint.run(_case(kernel, "bf16", "quick")).findings
    assert finding.status is FindingStatus.FAILED
    assert "keeps 14 bits, fp32 is due" in finding.message


def test_split_inputs_pass_as_fp32_when_their_parts_are_tf32():
    plain = emulated.sequential()

    def product(left, right):
        high = [emulated.rounded(part, "tf32") for part in (left, right)]
        low = [emulated.rounded(p - h, "tf32") for p, h in zip((left, right), high, strict=True)]
        small = emulated.rounded(plain(low[0], high[1]) + plain(high[0], low[1]), "fp32")
        return emulated.rounded(plain(*high) + small, "fp32")

    found = _found(product, "fp32", (1, 33))
    assert found.products == "fp32"


def test_lengths_are_left_out_when_the_kernel_refuses_them():
    def kernel(x, weight, bias):
        if x.shape[1] % 32:
            raise ValueError("K must be a multiple of 32")
        return torch.nn.functional.gelu(torch.nn.functional.linear(x, weight, bias))

    outcome = fingerprint.run(_case(kernel, "fp32"))
    assert {e.k for e in outcome.fields["fingerprint"].evidence} == {32, 64, 512, 1024, 4096}
    statuses = [f.status for f in outcome.findings]
    assert statuses == [FindingStatus.NOTED] * 4 + [FindingStatus.PASSED]
    outcome = fingerprint.run(_case(kernel, "fp32", "quick"))
    assert outcome.findings[-1].status is FindingStatus.SKIPPED


def test_evidence_has_every_length_when_torch_is_read():
    def kernel(x, weight, bias):
        return torch.nn.functional.gelu(torch.nn.functional.linear(x, weight, bias))

    outcome = fingerprint.run(_case(kernel, "fp32"))
    record = outcome.fields["fingerprint"]
    assert outcome.findings[0].status is FindingStatus.PASSED
    assert {e.k for e in record.evidence} == {1, 31, 32, 33, 64, 512, 513, 1024, 4096}
    of_sums = [e for e in record.evidence if e.quantity == "bits of a sum"]
    assert of_sums[0].predicted == {"fp64": 53, "fp32": 24, "fp16": 11, "bf16": 8}
    assert all(e.observed == 24 for e in of_sums)
