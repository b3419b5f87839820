"""All pairs of two 16-bit arguments: exact values, engines, verdicts, merging, the campaign."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gelu_verify import contracts, formats, operators
from gelu_verify import judge as judging
from gelu_verify.campaign import checked, pair_shard
from gelu_verify.campaign import run as campaigns
from gelu_verify.campaign.run import Plan
from gelu_verify.elements import Elements
from gelu_verify.errors import UsageError
from gelu_verify.exhaustive import transport
from gelu_verify.exhaustive.census import Census
from gelu_verify.exhaustive.pairs import cpu
from gelu_verify.exhaustive.pairs.figures import Figures, Limits
from gelu_verify.exhaustive.pairs.measuring import PairPass
from gelu_verify.exhaustive.pairs.reference import OPEN, PATTERNS, pair_reference
from gelu_verify.formats import tensors
from gelu_verify.job import plan
from gelu_verify.judge import judge
from gelu_verify.measure.error import measure
from tests import faulty_kernels as kernels

CPU = torch.device("cpu")
SOUND = {
    "geglu": kernels.geglu_eager,
    "bias_gelu": kernels.bias_eager,
    "gelu_backward": kernels.correct_backward,
}
#: Patterns of the first argument: subnormal, tiny, around 1, the tail, far, special.
ROWS = (0x0001, 0x0200, 0x3C01, 0x3F80, 0x4040, 0x4600, 0x7C00, 0x7F80, 0x7F81, 0x8001, 0xC0B0,
        0xC180, 0xC580, 0xC4FF, 0xFB00, 0xFF80, 0xFFFF)  # fmt: skip


def reference(operator: str, name: str = "bf16", formula: str = "erf"):
    return pair_reference(operators.get(operator), formula, formats.get(name), CPU)


def results(kernel, operator: str, name: str, first: int, rows: int = 1) -> torch.Tensor:
    """What a kernel gives for rows of pairs."""
    fmt = formats.get(name)
    own = tensors.from_bits(torch.arange(first, first + rows), fmt)[:, None].expand(rows, PATTERNS)
    every = tensors.from_bits(torch.arange(PATTERNS), fmt)
    if operator == "bias_gelu":
        return kernel(own.contiguous(), every)
    return kernel(own.contiguous(), every.expand(rows, PATTERNS).contiguous())


def noisy(kernel):
    """Results with every kind of fault: NaN, infinities, zeros, wrong signs, large errors."""

    def wrong(first, second):
        y = kernel(first, second)
        bits = torch.arange(y.numel()).reshape(y.shape) * 2654435761 % 4096
        for code, value in ((1, torch.nan), (2, torch.inf), (3, 0.0), (4, -0.0), (5, -1.0)):
            y = torch.where(bits == code, torch.tensor(value, dtype=y.dtype), y)
        return torch.where(bits == 6, -y, torch.where(bits == 7, y * 1.5, y))

    return wrong


def same(one: Figures, other: Figures) -> None:
    for field in dataclasses.fields(Figures):
        a, b = getattr(one, field.name), getattr(other, field.name)
        assert np.array_equal(np.asarray(a), np.asarray(b)), field.name


@pytest.mark.parametrize("name", ["bf16", "fp16"])
@pytest.mark.parametrize("operator", SOUND)
@pytest.mark.parametrize("formula", ["erf", "tanh", "sigmoid"])
def test_compiled_loop_gives_the_figures_of_the_general_measure(operator, name, formula) -> None:
    pytest.importorskip("numba", reason="the compiled loop needs numba")
    ref = reference(operator, name, formula)
    limits = Limits.of(ref.fmt, 4.0 - OPEN)
    for index, row in enumerate(ROWS):
        kernel = noisy(SOUND[operator]) if index % 2 else SOUND[operator]
        actual = results(kernel, operator, name, row)
        compiled = cpu.measured(ref, limits, row, actual)
        same(compiled, cpu.in_torch(ref, limits, row, actual))
        assert index % 2 == 0 or compiled.flagged.numel() > 0


@pytest.mark.parametrize("name", ["bf16", "fp16"])
@pytest.mark.parametrize("formula", ["erf", "tanh", "sigmoid"])
@pytest.mark.parametrize("operator", SOUND)
def test_exact_values_round_as_the_oracle_where_they_lie_next_to_ties(operator, formula, name):
    fmt = formats.get(name)
    ref = reference(operator, name, formula)
    generator = torch.Generator().manual_seed(3)
    first = torch.randint(0, PATTERNS, (400,), generator=generator)
    second = torch.randint(0, PATTERNS, (400,), generator=generator)
    # x large and small in turn, the other argument of few digits: many products and sums are ties.
    own = ref.swept if ref.factor is not None else 0
    swept, other = (first, second) if own == 0 else (second, first)
    swept[::3] = tensors.to_bits(tensors.from_bits(swept[::3] & 0x00FF | 0x4B00, fmt), fmt)
    swept[1::3] = swept[1::3] & 0x8FFF
    other[::2] &= 0xFF80
    exact = ref.exact(first, second)
    inputs = tuple(tensors.from_bits(part, fmt) for part in (first, second))
    oracle = operators.get(operator).precise(inputs, formula, fmt)
    got, due = exact.rounded(fmt), oracle.rounded(fmt)
    both_nan = torch.isnan(got) & torch.isnan(due)
    assert torch.equal(tensors.to_bits(got, fmt)[~both_nan], tensors.to_bits(due, fmt)[~both_nan])
    assert torch.equal(torch.isnan(got), torch.isnan(due))
    usable = torch.isfinite(due)
    assert torch.equal(exact.ulp_size(fmt)[usable], oracle.ulp_size(fmt)[usable])


def test_bias_pairs_are_within_the_stated_bound() -> None:
    ref = reference("bias_gelu", "bf16")
    x, bias = torch.tensor([0xC0B0, 0xC15A, 0x3F81]), torch.tensor([0xBD01, 0x3C01, 0xB001])
    got = ref.exact(x, bias).high.tolist()
    for a, b, value in zip(ref.values[x].tolist(), ref.values[bias].tolist(), got, strict=True):
        with mpmath.workprec(300):
            s = mpmath.mpf(a) + mpmath.mpf(b)
            y = s * mpmath.erfc(-s / mpmath.sqrt(2)) / 2
            assert abs(value - y) <= ref.bound * abs(y)


def census_of(operator, name, kernel, calls, contract="cancelling") -> Census:
    census = Census()
    measuring = PairPass(reference(operator, name), contracts.get(contract), census)
    for first, rows in calls:
        measuring.add(first, results(kernel, operator, name, first, rows))
    measuring.finish()
    return census


@pytest.mark.parametrize("contract", ["faithful", "tail_accurate", "cancelling"])
@pytest.mark.parametrize("name", ["bf16", "fp16"])
@pytest.mark.parametrize("operator", SOUND)
def test_verdicts_are_those_of_judging_every_pair(operator, name, contract) -> None:
    ref = reference(operator, name)
    kernel = noisy(SOUND[operator])
    for row in (0xC0B0, 0x3C01, 0xFF80):
        tally = census_of(operator, name, kernel, [(row, 1)], contract).tallies[contract]
        patterns = (torch.full((PATTERNS,), row), torch.arange(PATTERNS))
        actual = results(kernel, operator, name, row)[0]
        errors = measure(actual, ref.exact(*patterns), ref.fmt)
        inputs = tuple(tensors.from_bits(part, ref.fmt) for part in patterns)
        elements = Elements(ref.operator, ref.formula, ref.fmt, inputs, actual, errors)
        verdicts = judge(contracts.get(contract), elements)
        assert tally.broken == int(verdicts.broken.sum())
        if tally.broken:
            assert tally.first.inputs == (row, int(verdicts.broken.nonzero()[0]))
        codes, _ = ref.places(*patterns)
        for name_of, mask in verdicts.by_allowance.items():
            used = sum(u.count for (n, _), u in tally.usage.items() if n == name_of)
            assert used == int((mask & (codes >= 0)).sum())


@pytest.mark.parametrize("operator", ["geglu", "gelu_backward"])
def test_error_of_just_the_limit_is_judged_as_the_oracle_judges_it(monkeypatch, operator) -> None:
    """An activation of odd subnormals rounded, times powers of two, is off by 4 ULP but for f."""
    ref = reference(operator)
    sign = torch.tensor([0, 0x8000])
    tiny = (torch.arange(1, 128)[:, None] + sign).flatten()
    power = (torch.arange(1, 200, 6)[:, None] * 0x80 + sign).flatten()
    swept, other = (part.flatten() for part in torch.meshgrid(tiny, power, indexing="ij"))
    patterns = (swept, other) if ref.swept == 0 else (other, swept)
    exact = ref.exact(*patterns)
    inputs = tuple(tensors.from_bits(part, ref.fmt) for part in patterns)
    for off in (-4.0, 4.0):
        limit = exact.high + off * exact.ulp_size(ref.fmt)
        actual = tensors.round_float64(limit, ref.fmt)
        errors = measure(actual, exact, ref.fmt)
        elements = Elements(ref.operator, ref.formula, ref.fmt, inputs, actual, errors)
        at_limit = (errors.ulp.abs() - 4.0).abs() < 2.0**-40
        elements = elements.select(at_limit.nonzero().flatten())
        assert len(elements.errors) > 100
        oracle = ref.operator.precise(elements.inputs, ref.formula, ref.fmt)
        due = measure(elements.actual, oracle, ref.fmt).ulp.abs() <= 4.0
        # A product below ulp/16 may be beside the limit: those are the oracle's.
        asked = []
        precise = type(ref.operator).precise

        def counted(self, inputs, *rest, asked=asked, precise=precise):
            asked.append(len(inputs[0]))
            return precise(self, inputs, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(type(ref.operator), "precise", counted)
            within = judging._within_limit(4.0, elements)
        assert torch.equal(within, due)
        assert sum(asked) < len(due) / 2


@settings(max_examples=6, deadline=None)
@given(st.permutations(range(5)), st.sets(st.integers(1, 4)), st.sampled_from(sorted(SOUND)))
def test_any_split_in_any_order_gives_the_identical_record(order, cuts, operator) -> None:
    start, kernel = 0xC0AE, noisy(SOUND[operator])
    edges = [0, *sorted(cuts), 5]
    whole = census_of(operator, "bf16", kernel, [(start, 5)])
    calls = [(start + a, b - a) for a, b in pairwise(edges)]
    merged = Census()
    for _, call in sorted(zip(order, calls, strict=False)):
        merged.merge(transport.loads(transport.dumps(census_of(operator, "bf16", kernel, [call]))))
    assert transport.dumps(merged) == transport.dumps(whole)


@pytest.mark.parametrize(("name", "nan"), [("bf16", 254), ("fp16", 2046)])
def test_counts_add_up_with_nan_and_infinite_pairs(name, nan) -> None:
    infinity = {"bf16": 0x7F80, "fp16": 0x7C00}[name]
    census = census_of("geglu", name, kernels.geglu_eager, [(infinity - 1, 3)])
    assert census.patterns == census.summary.inputs == 3 * PATTERNS
    # The largest number, infinity, and a NaN.
    assert census.nan_inputs == 2 * nan + PATTERNS
    assert census.infinite_inputs == 2 + (PATTERNS - nan)
    assert census.summary.finite_inputs == PATTERNS


@pytest.mark.parametrize(
    ("operator", "kernel"),
    [
        ("bias_gelu", kernels.bias_ignored), ("bias_gelu", kernels.bias_twice),
        ("bias_gelu", kernels.bias_tanh), ("geglu", kernels.geglu_swapped),
        ("geglu", kernels.geglu_up_ignored), ("gelu_backward", kernels.without_density),
    ],
)  # fmt: skip
def test_fault_breaks_the_contract(operator, kernel) -> None:
    census = census_of(operator, "bf16", kernel, [(0xBF80, 2)])
    assert census.tallies["cancelling"].broken > 0
    sound = census_of(operator, "bf16", SOUND[operator], [(0xBF80, 2)])
    assert sound.tallies["cancelling"].broken == 0


def test_a_rounded_sum_is_counted_by_its_name_and_stricter_contracts_are_known_to_break() -> None:
    census = census_of("bias_gelu", "bf16", kernels.bias_eager, [(0xC0B0, 1)], "saturating")
    used = {name for name, _ in census.tallies["saturating"].usage}
    assert used == {"intermediate"}
    assert census.tallies["faithful"].broken > 0
    assert census.broken == set()


KERNEL = """
import torch
from tests.faulty_kernels import geglu_eager, bias_eager

def geglu(gate, up):
    assert gate.shape == up.shape
    return geglu_eager(gate, up)

def bias_gelu(x, bias):
    assert bias.dim() == 1
    return bias_eager(x, bias)

def raises(gate, up):
    if gate.dim() == 2:
        raise RuntimeError("no room")
    return geglu_eager(gate, up)
"""


def job_of(folder, function: str, operator: str):
    path = folder / "k.py"
    path.write_text(KERNEL)
    jobs = plan(f"{path}:{function}", operator=operator, format_names=("bf16",), depth="exhaustive")
    return jobs[0]


@pytest.mark.parametrize(("function", "operator"), [("geglu", "geglu"), ("bias_gelu", "bias_gelu")])
def test_campaign_over_rows_is_that_of_the_pass(tmp_path, function, operator) -> None:
    job = job_of(tmp_path, function, operator)
    assert checked.is_swept(job)
    told = []
    part = Plan(first=0xC0B0 << 16, patterns=3 << 16, shard=1 << 16)
    from gelu_verify.campaign import shard

    text = campaigns.run_here(job, shard.load(job), part, lambda done, total: told.append(done))
    expected = census_of(operator, "bf16", SOUND[operator], [(0xC0B0, 3)])
    assert text == transport.dumps(expected)
    assert told == [0, 1 << 16, 2 << 16, 3 << 16]


def test_campaign_stops_where_the_kernel_raises(tmp_path) -> None:
    from gelu_verify.campaign import shard

    job = job_of(tmp_path, "raises", "geglu")
    part = Plan(first=0, patterns=1 << 16, shard=1 << 16)
    with pytest.raises(campaigns.CampaignStopped, match="no room"):
        campaigns.run_here(job, shard.load(job), part, lambda *_: None)


@pytest.mark.parametrize(
    ("name", "operator", "fmt", "swept", "pairs"),
    [
        ("torch-geglu", None, "bf16", True, True),
        ("torch-bias-gelu", None, "fp16", True, True),
        ("torch-erf", "gelu_backward", "bf16", True, True),
        ("torch-erf", "gelu", "bf16", False, False),
        ("torch-erf", "gelu", "fp32", True, False),
        ("triton-erf-backward", None, "fp32", True, False),
        ("torch-geglu", None, "fp8_e5m2", False, False),
    ],
)
def test_jobs_of_pairs_are_those_of_two_16_bit_arguments(name, operator, fmt, swept, pairs) -> None:
    job = plan(name, operator=operator, format_names=(fmt,), depth="exhaustive")[0]
    assert (checked.is_swept(job), pair_shard.is_of_pairs(job)) == (swept, pairs)


def test_all_pairs_of_fp32_are_wrong_usage() -> None:
    with pytest.raises(UsageError, match=r"2\^32 pairs"):
        plan("torch-geglu", format_names=("fp32",), depth="exhaustive")


def test_record_says_that_all_pairs_were_measured(tmp_path) -> None:
    """A small campaign stands in for the whole one; only its count differs."""
    from gelu_verify.campaign import shard
    from gelu_verify.checks import accuracy
    from tests.cases import case

    job = job_of(tmp_path, "geglu", "geglu")
    part = Plan(first=0xC0B0 << 16, patterns=1 << 16, shard=1 << 16)
    census = campaigns.run_here(job, shard.load(job), part, lambda *_: None)
    found = accuracy.run(case(kernels.geglu_eager, "bf16", operator="geglu", census=census))
    record = found.fields["accuracy"]
    assert (record.sweep, record.inputs, record.exhaustive) == ("pairs", 1 << 16, False)
    assert found.findings[0].message == "65,536 pairs hold cancelling"
    whole = transport.loads(census)
    whole.summary.inputs = 1 << 32
    text = transport.dumps(whole)
    record = accuracy.run(case(kernels.geglu_eager, "bf16", operator="geglu", census=text)).fields
    assert record["accuracy"].exhaustive
    assert record["accuracy"].max_error_ulp < 1.0
    assert record["tightest"].contract == "faithful"


@pytest.mark.skipif(torch.cuda.is_available(), reason="runs in Triton's interpreter, on a CPU")
@pytest.mark.parametrize("operator", SOUND)
@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_triton_kernel_gives_the_figures_of_the_other_engines(operator, name) -> None:
    from gelu_verify.exhaustive.pairs import gpu

    ref = reference(operator, name)
    limits = Limits.of(ref.fmt, 4.0 - OPEN)
    row = 0xC0B0
    actual = results(noisy(SOUND[operator]), operator, name, row)
    ((first, part, figures),) = gpu.measured(ref, limits, row, actual)
    figures.flagged = figures.flagged.sort().values
    assert (first, part.shape) == (row, actual.shape)
    same(figures, cpu.measured(ref, limits, row, actual))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("operator", SOUND)
@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_compiled_kernel_gives_the_figures_of_the_loop_on_a_gpu(operator, name) -> None:
    from gelu_verify.exhaustive.pairs import gpu

    device = torch.device("cuda")
    on_gpu = pair_reference(operators.get(operator), "erf", formats.get(name), device)
    limits = Limits.of(on_gpu.fmt, 4.0 - OPEN)
    for row in ROWS:
        actual = results(noisy(SOUND[operator]), operator, name, row)
        ((_, _, figures),) = gpu.measured(on_gpu, limits, row, actual.to(device))
        expected = cpu.in_torch(reference(operator, name), limits, row, actual)
        assert np.array_equal(figures.histogram, expected.histogram)
        assert torch.equal(figures.flagged.sort().values.cpu(), expected.flagged)
        assert np.allclose(figures.largest, expected.largest, rtol=1e-9, atol=0.0)
        assert np.array_equal(figures.beyond, expected.beyond)
        assert np.array_equal(figures.zeros, expected.zeros)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("operator", SOUND)
def test_many_rows_at_once_add_up_to_each_row_alone_on_a_gpu(operator) -> None:
    """Many fill the multiprocessors, where a kernel that was right for few rows once miscounted."""
    from gelu_verify.exhaustive.pairs import gpu

    device = torch.device("cuda")
    on_gpu = pair_reference(operators.get(operator), "erf", formats.get("bf16"), device)
    limits = Limits.of(on_gpu.fmt, 4.0 - OPEN)
    first, rows = 0xC0A0, 2048
    actual = torch.cat(
        [
            results(SOUND[operator], operator, "bf16", first + part, 64)
            for part in range(0, rows, 64)
        ]
    ).to(device)
    ((_, _, together),) = gpu.measured(on_gpu, limits, first, actual)
    counts, flagged = np.zeros_like(together.histogram), []
    for low in range(0, rows, 32):
        ((_, _, part),) = gpu.measured(on_gpu, limits, first + low, actual[low : low + 32])
        counts += part.histogram
        flagged.append(part.flagged + low * PATTERNS)
    assert np.array_equal(together.histogram, counts)
    assert torch.equal(together.flagged.sort().values, torch.cat(flagged).sort().values)


#: Prints, for each kind of kernel, the masks of the exponents that choose a scale, and how many of
#: these exponents are taken of a |y|.
_COMPILE = """
import re, sys
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from gelu_verify.exhaustive.pairs import gpu, gpu_kernels
from gelu_verify.measure import histogram

kernel = gpu_kernels.rows_kernel
types = {"actual_ptr": "*i16", "codes_ptr": "*i32", "histogram_ptr": "*i32", "first": "i32",
         "capacity": "i32", "sums_ptr": "*i64", "found_ptr": "*i64", "flagged_ptr": "*i64",
         "counter_ptr": "*i64"}
for mode in (0, 1, 2):
    values = {"MODE": mode, "FORMULA": "erf", "TERMS": 2, "LOWEST_BIN": histogram.OFFSET,
              "BINS": histogram.BIN_COUNT, "BLOCK": gpu._BLOCK, "IS_BF16": True}
    signature = {n: "constexpr" if n in values else types.get(n, "*fp64") for n in kernel.arg_names}
    source = ASTSource(kernel, signature, values)
    options = {"num_warps": gpu._WARPS, "enable_fp_fusion": False}
    ptx = compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]
    pattern = r"shr.u64 \\t(%rd\\d+), (%rd\\d+), 49;\\s+and.b64 \\t%rd\\d+, \\1, (\\d+);"
    found = re.findall(pattern, ptx)
    sizes = [number for _, number, _ in found if f"abs.f64 \\t{number}," in ptx]
    print(*{mask for _, _, mask in found}, len(sizes))
"""


def test_a_nan_whatever_its_sign_reads_the_last_scale_and_none_beyond(tmp_path) -> None:
    """A GPU's |NaN| may be negative, and its bits then point 16 KiB beyond the 2048 scales."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    command = [sys.executable, "-c", _COMPILE]
    found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert found.stdout.split() == [str(2047 * 8), "0"] * 3
