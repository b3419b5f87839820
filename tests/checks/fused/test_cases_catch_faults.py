"""A kernel with one fault is caught by a case of the standard list, and a sound one by none."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from gelu_verify.checks.fused import bound
from gelu_verify.formats import FORMATS, tensors
from gelu_verify.inputs.problems.layouts import REPEATING
from tests.cases import failures
from tests.checks.fused.listed_cases import catching, fused_case

TILE = 16


def sound(x, weight, bias):
    sums = functional.linear(x.double(), weight.double(), bias.double())
    return functional.gelu(sums).to(x.dtype)


def as_if_contiguous(x):
    """Return what a kernel reads that takes every tensor for contiguous, within its storage."""
    strides = torch.empty(x.shape, device="meta").stride()
    held = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    return torch.as_strided(x, x.shape, strides) if x.numel() <= held else x.contiguous()


def ignores_strides_of_x(x, weight, bias):
    return sound(as_if_contiguous(x), weight, bias)


def ignores_strides_of_weight(x, weight, bias):
    return sound(x, as_if_contiguous(weight), bias)


def ignores_strides_of_bias(x, weight, bias):
    return sound(x, weight, as_if_contiguous(bias))


def ignores_one_bias(x, weight, bias):
    short = bias.clone()
    short[-1:] = 0
    return sound(x, weight, short)


def swaps_rows(x, weight, bias):
    result = sound(x, weight, bias)
    return result if result.shape[-2] < 2 else result[..., [1, 0, *range(2, x.shape[-2])], :]


def shifts_the_last_tile(x, weight, bias):
    """Columns of the last tile start one to the left where N is no multiple of the tile."""
    result = sound(x, weight, bias)
    n = result.shape[-1]
    start = n // TILE * TILE
    if n % TILE and start:
        result[..., start:] = result[..., start - 1 : n - 1].clone()
    return result


def drops_the_tail_of_k(x, weight, bias):
    k = x.shape[-1]
    kept = k // TILE * TILE if k >= TILE else k
    return sound(x[..., :kept], weight[..., :kept], bias)


def reads_the_row_beyond_k(x, weight, bias):
    """Load x in whole tiles of K, unmasked, times a weight that is masked: 0 · what is beyond."""
    k = x.shape[-1]
    whole = -(-k // TILE) * TILE
    held = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    last = sum(
        (size - 1) * stride for size, stride in zip(x.shape[:-1], x.stride()[:-1], strict=True)
    )
    if not x.numel() or x.stride(-1) != 1 or last + whole > held:
        return sound(x, weight, bias)
    wide = torch.as_strided(x, (*x.shape[:-1], whole), x.stride())
    return sound(wide, functional.pad(weight, (0, whole - k)), bias)


def splits_the_batch_wrongly(x, weight, bias):
    """Take (B, M, K) for (M, B, K)."""
    if x.dim() < 3:
        return sound(x, weight, bias)
    return sound(x.transpose(0, 1).reshape(x.shape), weight, bias)


def drops_the_last_row(x, weight, bias):
    result = sound(x, weight, bias)
    result[..., 128:, :] = 0
    return result


FAULTS = (
    ignores_strides_of_x,
    ignores_strides_of_weight,
    ignores_strides_of_bias,
    ignores_one_bias,
    swaps_rows,
    shifts_the_last_tile,
    drops_the_tail_of_k,
    reads_the_row_beyond_k,
    splits_the_batch_wrongly,
    drops_the_last_row,
)


def test_no_case_catches_a_sound_kernel():
    assert catching(sound) == []


@pytest.mark.parametrize("kernel", FAULTS, ids=lambda f: f.__name__)
def test_a_case_catches_the_fault(kernel):
    assert catching(kernel)


def test_check_of_the_bound_names_the_case_that_caught_it():
    case = catching(swaps_rows)[0]
    (failure,) = failures(bound.run(fused_case(swaps_rows, texts=[str(case)])))
    assert failure.input == f"case {case}"
    assert f"--case {case}" in failure.reproduce


def test_layouts_alone_show_what_a_contiguous_tensor_hides():
    cases = catching(reads_the_row_beyond_k)
    assert cases
    # What lies beyond the end of a tensor is nobody's, unless a layout puts poison there.
    assert all(
        {case.layout, *dict(case.special).values()} & {"guarded", "misaligned", "sliced"}
        or case.values.startswith("one_")
        for case in cases
    )
    strided = catching(ignores_strides_of_bias)
    assert all(
        {case.layout, dict(case.special).get("bias")} & {"strided", *REPEATING} for case in strided
    )


def rounded(part, bits):
    """Return values rounded to a number of bits of significand: a product's inputs."""
    name = {11: "fp16", 8: "bf16"}[bits]
    return tensors.round_float64(part.double(), FORMATS[name]).double()


def test_products_of_fewer_bits_break_cases_of_fp32():
    def tf32(x, weight, bias):
        sums = rounded(x, 11) @ rounded(weight, 11).T + bias
        return functional.gelu(sums).to(x.dtype)

    cases = catching(tf32, name="fp32")
    assert "cancelling" in {case.values for case in cases}
    assert "indexed" not in {case.values for case in cases}  # digits are exact in TF32


def single_pass_layernorm(x, weight, bias):
    mean = x.mean(-1, keepdim=True)
    variance = (x * x).mean(-1, keepdim=True) - mean * mean
    return functional.gelu((x - mean) * (variance + 1e-5).rsqrt() * weight + bias)


def softmax_without_maximum(q, k, v):
    weights = (q @ k.mT * q.shape[-1] ** -0.5).exp()
    return (weights / weights.sum(-1, keepdim=True)) @ v


def geglu_swapped(gate, up):
    return functional.gelu(up) * gate


def pool_of_the_first_three(x, weight, bias):
    sums = functional.relu(functional.conv2d(x, weight, bias, padding=1))
    h, w = (size // 2 * 2 for size in sums.shape[-2:])
    corners = [sums[..., i:h:2, j:w:2] for i, j in ((0, 0), (0, 1), (1, 0))]
    return torch.stack(corners).amax(0)


@pytest.mark.parametrize(
    ("kernel", "operator", "by"),
    [
        (single_pass_layernorm, "layernorm_gelu", "high_mean"),
        (softmax_without_maximum, "attention", "common_offset"),
        (softmax_without_maximum, "attention", "wide_scores"),
        (geglu_swapped, "geglu", "indexed"),
        (pool_of_the_first_three, "conv_relu_pool", "indexed"),
    ],
)
def test_values_that_hurt_an_operator_catch_its_known_fault(kernel, operator, by):
    assert by in {case.values for case in catching(kernel, operator, "fp32")}
