"""Layouts hold the same values; what lies around them is poison."""

from __future__ import annotations

import pytest
import torch

from gelu_verify.formats import FORMATS, tensors
from gelu_verify.inputs.problems.layouts import LAYOUTS, REPEATING

SHAPES = ((7,), (5, 3), (3, 5, 7), (2, 3, 4, 5), (0, 4), (4, 0), (1, 1))
every_layout = pytest.mark.parametrize("name", LAYOUTS)
KEEPING = [name for name in LAYOUTS if name not in REPEATING]


def counted(shape, fmt):
    count = torch.Size(shape).numel()
    return tensors.from_bits(torch.arange(count) % 120, fmt).view(shape)


def bits(x, fmt):
    return tensors.to_bits(x.clone(memory_format=torch.contiguous_format), fmt)


@pytest.mark.parametrize("name", KEEPING)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_values_are_the_same_in_every_format(name, shape, fmt):
    x = counted(shape, fmt)
    made = LAYOUTS[name](x)
    assert (made.shape, made.dtype) == (x.shape, x.dtype)
    assert torch.equal(bits(made, fmt), bits(x, fmt))


@pytest.mark.parametrize(
    ("name", "stride"),
    [
        ("contiguous", (3, 1)),
        ("guarded", (3, 1)),
        ("misaligned", (3, 1)),
        ("sliced", (11, 1)),
        ("strided", (6, 2)),
        ("chunked", (6, 1)),
        ("transposed", (1, 5)),
        ("expanded", (0, 1)),
        ("expanded_last", (1, 0)),
    ],
)
def test_strides_are_those_of_the_name(name, stride):
    assert LAYOUTS[name](torch.ones(5, 3)).stride() == stride


def test_images_have_their_channels_side_by_side():
    made = LAYOUTS["channels_last"](torch.ones(2, 3, 4, 5))
    assert made.is_contiguous(memory_format=torch.channels_last)
    assert not made.is_contiguous()
    assert LAYOUTS["permuted"](torch.ones(3, 5, 7)).stride() == (7, 21, 1)


def test_tensor_of_too_few_dimensions_is_contiguous():
    assert LAYOUTS["transposed"](torch.ones(4)).stride() == (1,)
    assert LAYOUTS["channels_last"](torch.ones(4, 3)).is_contiguous()


def test_repeating_layouts_repeat_the_first():
    x = torch.arange(6.0).view(2, 3)
    assert LAYOUTS["expanded"](x).tolist() == [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]
    assert LAYOUTS["expanded_last"](x).tolist() == [[0.0, 0.0, 0.0], [3.0, 3.0, 3.0]]


@pytest.mark.parametrize("name", ["guarded", "misaligned"])
def test_memory_beside_a_guarded_tensor_is_poison(name):
    made = LAYOUTS[name](torch.zeros(4, 5))
    start = made.storage_offset()
    whole = torch.as_strided(made, (start + 20 + 64,), (1,), 0)
    around = torch.cat([whole[:start], whole[start + 20 :]])
    assert (torch.isnan(around) | (around == 96.0)).all()
    assert torch.isnan(around).any()
    assert (around == 96.0).any()
    assert (made.data_ptr() % 64 == 0) == (name == "guarded")


def test_columns_and_rows_beside_a_slice_are_poison():
    made = LAYOUTS["sliced"](torch.zeros(4, 5))
    wider = torch.as_strided(made, (4, 8), made.stride(), made.storage_offset())
    below = torch.as_strided(made, (5, 5), made.stride(), made.storage_offset())
    for beyond in (wider[:, 5:], below[4:]):
        assert (torch.isnan(beyond) | (beyond == 96.0)).all()
    assert torch.isnan(wider[:, 5:]).any(dim=1).all()


@every_layout
def test_layout_is_a_copy(name):
    x = torch.zeros(3, 3)
    LAYOUTS[name](x)
    made = LAYOUTS[name](x)
    x.fill_(1.0)
    assert made.sum() == 0.0
