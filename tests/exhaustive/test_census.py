"""The census does not depend on how the patterns are split and in which order they are added."""

import importlib.util
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gelu_verify.exhaustive import transport
from gelu_verify.exhaustive.census import Census
from tests import faulty_kernels
from tests.exhaustive.passes import (
    FAULTY,
    SOUND,
    borders,
    census,
    cpu_engine,
    gpu_engine,
    torch_engine,
)

KERNELS = [SOUND["erf"], *FAULTY]
_LENGTH = 1 << 10
_STARTS = [0x40AB1000, 0xBF3FF000, 0xBF7FFE00, 0xC1600000, 0x7F7FFE00, 0x38000000, 0xC0B1FE00]


def stable(x):
    """A kernel with errors, reversals and classes, one element at a time."""
    bits = x.view(torch.int32)
    y = faulty_kernels.guarded(x)
    y = torch.where(bits % 16 == 3, y * (1 + 9 * 2.0**-23), y)
    y = torch.where(bits % 129 == 5, -y, y)
    return torch.where(bits % 257 == 7, torch.nan, y)


ENGINES = [torch_engine]
if importlib.util.find_spec("numba"):
    ENGINES.append(cpu_engine)


@settings(max_examples=30)
@given(
    engine=st.sampled_from(ENGINES),
    start=st.sampled_from([*_STARTS, *(b - _LENGTH // 2 for b in borders("erf", 0)[1:])]),
    cuts=st.sets(st.integers(1, _LENGTH - 1), max_size=6),
    order=st.randoms(use_true_random=False),
)
def test_census_is_the_same_when_split_and_reordered(engine, start, cuts, order):
    check_split(engine, start, cuts, order)


@settings(max_examples=3)
@given(
    start=st.sampled_from(_STARTS),
    cuts=st.sets(st.integers(1, _LENGTH - 1), min_size=1, max_size=2),
    order=st.randoms(use_true_random=False),
)
@pytest.mark.skipif(torch.cuda.is_available(), reason="for Triton's interpreter")
def test_census_is_the_same_when_split_and_reordered_on_a_gpu(start, cuts, order):
    check_split(gpu_engine, start, cuts, order)


def check_split(engine, start, cuts, order):
    if start < 1 << 31 < start + _LENGTH:
        start = 1 << 31  # a call does not cross the sign
    whole = transport.dumps(census(stable, "erf", 0, [(start, start + _LENGTH)], engine=engine))
    edges = [start, *(start + cut for cut in sorted(cuts)), start + _LENGTH]
    parts = [census(stable, "erf", 0, [pair], engine=engine) for pair in pairwise(edges)]
    order.shuffle(parts)
    merged = Census()
    for part in parts:
        merged.merge(part)
    assert transport.dumps(merged) == whole


@pytest.mark.parametrize("kernel", KERNELS)
def test_merge_adds_counts_when_ranges_are_disjoint(kernel):
    one = census(kernel, "erf", 0, [(0xC0B00000, 0xC0B00100)])
    other = census(kernel, "erf", 0, [(0x7F800000, 0x7F800010)])
    one.merge(other)
    assert one.patterns == 0x110
    assert (one.nan_inputs, one.infinite_inputs) == (0xF, 1)
