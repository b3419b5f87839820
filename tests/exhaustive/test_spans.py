"""The spans of patterns: nothing left out, nothing twice, and every zone's claim at its borders."""

from collections import Counter
from itertools import pairwise

import mpmath
import pytest
import torch

from gelu_verify.exhaustive.exact import flat_patterns
from gelu_verify.exhaustive.spans import EPSILON, FP32, PATTERNS, Zone, spans, turning_pattern
from gelu_verify.reference import oracle
from tests.exhaustive.passes import FUNCTIONS, bits

FLAT = (Zone.FLAT_ZERO, Zone.FLAT_IDENTITY, Zone.FLAT_HALF)


@pytest.mark.parametrize(("formula", "derivative"), FUNCTIONS)
def test_every_pattern_is_in_one_span(formula, derivative):
    table = spans(formula, derivative)
    assert table[0].start == 0
    assert table[-1].stop == PATTERNS
    assert all(one.stop == other.start for one, other in pairwise(table))
    assert all(span.start < span.stop for span in table)
    sizes = Counter()
    for span in table:
        sizes[span.zone] += span.stop - span.start
        assert len({p >> 23 for p in (span.start, span.stop - 1)}) == 1  # one binade
        assert (span.region is None) == (span.zone in (Zone.NAN, Zone.INFINITE))
    # 2^23 - 1 NaNs of each sign.
    assert sizes[Zone.NAN] == 16_777_214
    assert sizes[Zone.INFINITE] == 2
    assert sum(sizes.values()) == 2**32


@pytest.mark.parametrize(("formula", "derivative"), FUNCTIONS)
def test_exact_value_is_next_to_the_flat_one_when_a_span_is_flat(formula, derivative):
    seen = set()
    for span in spans(formula, derivative):
        if span.zone not in FLAT:
            continue
        seen.add(span.zone)
        for pattern in {span.start, span.start + 1, span.stop - 2, span.stop - 1}:
            flat = flat_patterns(span, bits(pattern, pattern + 1), derivative)
            exact = oracle.value(formula, FP32.decode(pattern), derivative=derivative, bits=200)
            with mpmath.workprec(200):
                error = abs(mpmath.mpf(float(flat.view(torch.float32)[0])) - exact)
                assert error < EPSILON * FP32.ulp(exact), (span, hex(pattern))
    assert seen == set(FLAT)


@pytest.mark.parametrize("formula", ["erf", "tanh", "sigmoid"])
def test_function_turns_next_to_the_turning_pattern(formula):
    turning = turning_pattern(formula)
    # In the order of patterns x falls: before the minimum f falls, after it f rises.
    here, after, later = (
        oracle.value(formula, FP32.decode(turning + k), bits=200) for k in (-1, 0, 3)
    )
    assert here > after
    lowest = oracle.minimum(formula)[0]
    assert FP32.decode(turning) >= lowest >= FP32.decode(turning + 1)
    assert later > oracle.value(formula, FP32.decode(turning + 2), bits=200)


def test_spans_are_clipped_when_a_range_cuts_them():
    span = spans("erf", 0)[3]
    assert span.clipped(0, span.start) is None
    assert span.clipped(span.start + 1, span.stop + 9) == type(span)(
        span.start + 1, span.stop, span.zone, span.region
    )
