"""Empty dimensions, and inputs that promise nothing: open, with the kind that IEEE 754 gives."""

from __future__ import annotations

import math

import pytest
import torch

from gelu_verify.formats import FORMATS
from gelu_verify.operators import fused
from tests.operators.fused.samples import arithmetic, inputs

SIZES = {"b": 2, "m": 3, "n": 4, "k": 5, "c": 2, "h": 4, "w": 4, "o": 3, "l": 4, "d": 3}
#: torch's convolution takes no empty images or channels.
NEVER_EMPTY = {("conv_relu_pool", size) for size in "chwo"}
CASES = [
    (name, size, count)
    for name in fused.NAMES
    for size in fused.get(name).dims
    for count in (0, 1)
    if count or (name, size) not in NEVER_EMPTY
]


@pytest.mark.parametrize(("name", "size", "count"), CASES)
def test_shapes_hold_when_a_dimension_is_empty_or_one(name: str, size: str, count: int) -> None:
    operator = fused.get(name)
    dims = {dim: SIZES[dim] for dim in operator.dims} | {size: count}
    parts = inputs(name, dims, FORMATS["fp32"])
    exact = operator.forward(parts, "erf", arithmetic("fp32"))
    shape = operator.output_shape(tuple(tuple(part.shape) for part in parts))
    assert tuple(exact.value.shape) == tuple(exact.total.shape) == shape
    gradients = operator.backward(torch.ones(shape), parts, "erf", arithmetic("fp32"))
    for part, found in zip(parts, gradients, strict=True):
        assert found.value.shape == found.total.shape == part.shape


@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("name", fused.NAMES)
def test_special_inputs_open_what_they_reach_and_nothing_else(name: str, special: float) -> None:
    operator = fused.get(name)
    dims = {dim: SIZES[dim] for dim in operator.dims}
    for place in range(len(operator.arguments)):
        parts = inputs(name, dims, FORMATS["fp32"])
        plain = operator.forward(parts, "erf", arithmetic("fp32"))
        parts[place].view(-1)[0] = special
        found = operator.forward(parts, "erf", arithmetic("fp32"))
        closed = torch.isfinite(found.total)
        assert bool(torch.isfinite(found.value[closed]).all())
        assert bool((found.value == plain.value)[closed].all())
        assert 0 < int((~closed).sum()) < closed.numel()
        if math.isnan(special):
            assert bool((found.value.isnan() == ~closed).all())


def test_padding_times_an_infinite_weight_is_the_kernel_s_choice() -> None:
    x, weight, bias = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3), torch.zeros(1)
    weight[0, 0, 0, 0] = math.inf
    found = fused.get("conv_relu_pool").forward((x, weight, bias), "erf", arithmetic("fp32"))
    assert not bool(found.value.isnan().any())
    assert found.value[0, 0, 1, 1] == math.inf
    # The first window has a place at the border and one inside: NaN and infinity are both right.
    assert found.value[0, 0, 0, 0] == 0.0
    assert bool(found.total[0, 0, 0, 0].isnan())
    assert not bool(torch.isfinite(found.total).any())
