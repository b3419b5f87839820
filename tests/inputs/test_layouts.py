"""Layouts hold the same values in the same order, by another route."""

from __future__ import annotations

import pytest
import torch

from gelu_verify.formats import FORMATS, tensors
from gelu_verify.inputs import layouts
from gelu_verify.inputs.layouts import CONTIGUOUS, ROUTES, Route

#: A multiple of 4, 8, 15 and 30: no layout leaves a remainder out.
COUNT = 240
by_name = {route.name: route for route in ROUTES}
every_route = pytest.mark.parametrize("route", ROUTES, ids=lambda r: r.name)


def taken(route: Route, x: torch.Tensor) -> torch.Tensor:
    return x[: route.values_per_call] if route.values_per_call else x


@every_route
def test_values_are_the_same_in_the_same_order(route: Route) -> None:
    x = taken(route, torch.arange(1, COUNT + 1, dtype=torch.float32))
    made = route.layout(x)
    expected = x.repeat_interleave(3) if route.name == "expanded" else x
    assert made.dtype is x.dtype
    assert torch.equal(made.reshape(-1), expected)


@every_route
@pytest.mark.parametrize("name", FORMATS)
def test_layouts_work_in_every_format(route: Route, name: str) -> None:
    fmt = FORMATS[name]
    x = taken(route, tensors.from_bits(torch.arange(COUNT) % 120, fmt))
    made = route.layout(x)
    assert made.dtype is x.dtype
    expected = tensors.to_bits(x, fmt)
    expected = expected.repeat_interleave(3) if route.name == "expanded" else expected
    assert torch.equal(tensors.to_bits(made.reshape(-1), fmt), expected)


@pytest.mark.parametrize(
    ("name", "shape", "stride", "contiguous", "offset"),
    [
        ("strided", (240,), (2,), False, 0),
        ("transposed", (60, 4), (1, 60), False, 0),
        ("sliced", (30, 8), (16, 1), False, 0),
        ("offset", (240,), (1,), True, 1),
        ("expanded", (240, 3), (1, 0), False, 0),
        ("3-d", (16, 3, 5), (15, 5, 1), True, 0),
        ("permuted", (16, 3, 5), (1, 80, 16), False, 0),
        ("channels last", (8, 3, 2, 5), (30, 1, 15, 3), False, 0),
        ("short (7)", (7,), (1,), True, 0),
        ("single", (1,), (1,), True, 0),
        ("0-d", (), (), True, 0),
    ],
)
def test_route_has_the_layout_it_is_named_after(
    name: str, shape: tuple[int, ...], stride: tuple[int, ...], contiguous: bool, offset: int
) -> None:
    route = by_name[name]
    made = route.layout(taken(route, torch.arange(float(COUNT))))
    assert made.shape == shape
    assert made.stride() == stride
    assert made.is_contiguous() is contiguous
    assert made.storage_offset() == offset


def test_all_routes_are_listed_above() -> None:
    assert len(by_name) == len(ROUTES) == 11
    assert (CONTIGUOUS.name, CONTIGUOUS.values_per_call) == ("contiguous", 0)


def test_gaps_are_not_read_as_values_when_strided() -> None:
    made = layouts.strided(torch.ones(5))
    made.fill_(7.0)
    assert made.tolist() == [7.0] * 5


@pytest.mark.parametrize("name", ["transposed", "sliced", "3-d"])
def test_remainder_is_left_out_when_the_count_does_not_fit(name: str) -> None:
    x = torch.arange(31.0)
    made = by_name[name].layout(x).reshape(-1)
    assert 0 < made.numel() <= 31
    assert torch.equal(made, x[: made.numel()])
