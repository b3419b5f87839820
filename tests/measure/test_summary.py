"""Summaries merge exactly, and their sums are those of rational arithmetic."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gelu_verify.formats import FORMATS
from gelu_verify.measure import histogram
from gelu_verify.measure.error import Class, Errors
from gelu_verify.measure.regions import REGIONS, Region
from gelu_verify.measure.summary import Batch, RegionSummary, Sample, Summary, worse
from tests import strategies
from tests.samples import as_batch, elements

FP32 = FORMATS["fp32"]
NAN, INF = math.nan, math.inf


def batch_of(
    errors: list[float],
    regions: list[int] | None = None,
    classes: list[int] | None = None,
    inputs: list[int] | None = None,
    actual: list[int] | None = None,
) -> Batch:
    """A batch with given errors; classes without a distance are not finite."""
    count = len(errors)
    codes = torch.tensor(classes or [0] * count, dtype=torch.uint8)
    lost = torch.tensor([not Class(c).has_distance for c in codes.tolist()], dtype=torch.bool)
    ulp = torch.tensor(errors, dtype=torch.float64)
    sizes = torch.ones(count, dtype=torch.float64)
    return Batch(
        (torch.tensor(inputs or list(range(count))),),
        torch.tensor(actual or list(range(count))),
        torch.tensor(regions or [4] * count),
        Errors(ulp, ulp.abs(), sizes, codes, ~lost & torch.isfinite(ulp), 0.0),
    )


def part(batch: Batch, indices: list[int]) -> Batch:
    chosen = torch.tensor(indices)
    return Batch(
        tuple(bits[chosen] for bits in batch.inputs),
        batch.actual[chosen],
        batch.regions[chosen],
        batch.errors.select(chosen),
    )


def _sample(sample: Sample | None) -> Any:
    return sample and (sample.inputs, sample.actual, sample.error_ulp.hex())


def fields(summary: Summary) -> Any:
    """Everything in a summary, bit for bit, in a form that compares with ==."""
    regions = {
        region: (
            r.count,
            r.clipped,
            r.signed_sum,
            r.small_square_sum,
            r.large_square_sum,
            _sample(r.worst),
            r.histogram.tolist(),
        )
        for region, r in summary.regions.items()
    }
    classes = {
        cls: (t.count, _sample(t.first), _sample(t.worst)) for cls, t in summary.classes.items()
    }
    return summary.inputs, summary.finite_inputs, regions, classes


def summary_of(*batches: Batch) -> Summary:
    summary = Summary()
    for batch in batches:
        summary.add(batch)
    return summary


error_values = st.one_of(
    st.floats(-8, 8),
    st.floats(-(2.0**30), 2.0**30),
    st.sampled_from([0.0, -0.0, 0.5, -0.5, 256.0, -256.0, 2.0**24, -(2.0**24), 2.0**41, 1e300]),
)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """A batch full of ties, repeated inputs, clipped errors and every class."""
    count = draw(st.integers(2, 40))

    def column(element: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(element, min_size=count, max_size=count))

    classes = column(st.sampled_from([0, 0, 0, *(int(c) for c in Class)]))
    errors = column(error_values)
    nan = int(Class.NAN_FOR_NUMBER), int(Class.NUMBER_FOR_NAN)
    errors = [NAN if c in nan else e for c, e in zip(classes, errors, strict=True)]
    return batch_of(
        errors,
        column(st.integers(-1, len(REGIONS) - 1)),
        classes,
        column(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 5)),
        column(st.integers(0, 3)),
    )


@given(batch=batches(), data=st.data())
def test_summary_is_identical_when_split_in_any_way(batch: Batch, data: st.DataObject) -> None:
    whole = fields(summary_of(batch))
    chunks = data.draw(strategies.chunkings(len(batch.errors)))
    assert fields(summary_of(*(part(batch, chunk) for chunk in chunks))) == whole
    summaries = [summary_of(part(batch, chunk)) for chunk in chunks]
    while len(summaries) > 1:
        left = summaries.pop(data.draw(st.integers(0, len(summaries) - 1)))
        right = summaries.pop(data.draw(st.integers(0, len(summaries) - 1)))
        left.merge(right)
        summaries.append(left)
    assert fields(summaries[0]) == whole
    empty = Summary()
    empty.merge(summaries[0])
    assert fields(empty) == whole


@given(batch=batches())
def test_sums_are_those_of_rational_arithmetic_within_the_quantum(batch: Batch) -> None:
    summary = summary_of(batch)
    for code, region in enumerate(REGIONS):
        members = [
            Fraction(e)
            for e, c, f in zip(
                batch.errors.ulp.tolist(),
                batch.regions.tolist(),
                batch.errors.finite.tolist(),
                strict=True,
            )
            if f and c == code
        ]
        clipped = [max(min(e, 2**24), -(2**24)) for e in members]
        actual = summary.regions[region]
        assert actual.count == len(members)
        assert actual.clipped == sum(abs(e) > 2**24 for e in members)
        assert int(actual.histogram.sum()) == len(members)
        half = Fraction(len(members), 2)
        assert abs(actual.signed_sum - 2**20 * sum(clipped)) <= half
        small = [e * e for e in clipped if abs(e) <= 256]
        large = [e * e for e in clipped if abs(e) > 256]
        # float64 rounds a square of up to 2^48 to 53 bits before the sum does.
        assert abs(actual.small_square_sum - 2**20 * sum(small)) <= half * Fraction(1001, 1000)
        assert abs(actual.large_square_sum - Fraction(sum(large), 16)) <= half * Fraction(
            1001, 1000
        )
        if members:
            assert abs(Fraction(actual.worst.error_ulp)) == max(abs(e) for e in members)
            mean = float(sum(clipped) / len(members))
            assert actual.mean_error_ulp == pytest.approx(mean, abs=2.0**-20, rel=1e-12)
            rms = math.sqrt(sum(e * e for e in clipped) / len(members))
            assert actual.rms_error_ulp == pytest.approx(rms, abs=2.0**-10, rel=1e-4)
            assert actual.max_error_ulp == float(max(abs(e) for e in members))


def test_figures_of_a_batch_counted_by_hand() -> None:
    errors = [0.25, -0.75, 3.0, -3.0, NAN, INF]
    classes = [0, 0, 6, 0, int(Class.NAN_FOR_NUMBER), int(Class.INFINITY_FOR_FINITE)]
    summary = summary_of(batch_of(errors, [4, 4, 3, 3, 3, -1], classes, inputs=[9, 8, 7, 6, 5, 4]))
    assert (summary.inputs, summary.finite_inputs) == (6, 5)
    shoulder = summary.regions[Region.SHOULDER]
    assert (shoulder.count, shoulder.max_error_ulp, shoulder.mean_error_ulp) == (2, 3.0, 0.0)
    assert shoulder.worst == Sample((6,), 3, -3.0)
    centre = summary.regions[Region.CENTRE]
    assert centre.mean_error_ulp == -0.25
    assert centre.rms_error_ulp == pytest.approx(math.sqrt((0.0625 + 0.5625) / 2), rel=1e-12)
    assert {cls: tally.count for cls, tally in summary.classes.items()} == {
        Class.NAN_FOR_NUMBER: 1,
        Class.INFINITY_FOR_FINITE: 1,
        Class.COLLAPSE: 1,
    }
    total = summary.total()
    assert (total.count, total.max_error_ulp, total.mean_error_ulp) == (4, 3.0, -0.125)
    assert histogram.quantile(total.histogram, 0.5) == 0.875


def test_smallest_pattern_is_named_when_errors_are_equal() -> None:
    batch = batch_of([2.0, -2.0, 2.0, 1.0], inputs=[7, 3, 5, 0], actual=[1, 2, 3, 4])
    assert summary_of(batch).regions[Region.CENTRE].worst == Sample((3,), 2, -2.0)


def test_second_argument_decides_when_the_first_is_equal() -> None:
    batch = batch_of([2.0, 2.0, 2.0], actual=[1, 2, 3])
    batch = replace(batch, inputs=(torch.tensor([4, 4, 9]), torch.tensor([8, 6, 0])))
    worst = summary_of(batch).regions[Region.CENTRE].worst
    assert worst == Sample((4, 6), 2, 2.0)


def test_smaller_result_is_named_when_one_input_gives_two_results() -> None:
    one = batch_of([2.0], inputs=[5], actual=[9])
    other = batch_of([-2.0], inputs=[5], actual=[7])
    expected = Sample((5,), 7, -2.0)
    for order in ([one, other], [other, one]):
        assert summary_of(*order).regions[Region.CENTRE].worst == expected


def test_number_is_worse_than_nan_whose_size_is_unknown() -> None:
    nan, number = Sample((1,), 1, NAN), Sample((2,), 1, 0.0)
    assert worse(nan, number) is number
    assert worse(number, nan) is number
    assert worse(None, nan) is nan


def test_regions_and_classes_are_those_of_a_real_kernel() -> None:
    x = [-15.0, -6.0, -4.0, -2.0, 0.5, 2.0**-20, 2.0, 9.0, INF, NAN]
    got = [-0.0, 0.0, NAN, INF, 0.0, 0.0, 2.0, 9.0, INF, NAN]
    summary = summary_of(as_batch(elements(x, got, FP32)))
    assert (summary.inputs, summary.finite_inputs) == (10, 8)
    counts = {region.value: s.count for region, s in summary.regions.items() if s.count}
    assert counts == {
        **{"zero": 1, "deep_tail": 1, "centre": 1, "tiny": 1},
        **{"positive": 1, "saturated": 1},
    }
    assert {cls.label: t.count for cls, t in summary.classes.items()} == {
        **{"collapse": 3, "nan_for_number": 1, "infinity_for_finite": 1},
    }


def test_sums_do_not_overflow_when_every_error_is_clipped() -> None:
    count = 600_000
    ulp = torch.full((count,), 1e30, dtype=torch.float64)
    plain = torch.zeros(count, dtype=torch.uint8)
    finite = torch.ones(count, dtype=torch.bool)
    batch = Batch(
        (torch.arange(count),),
        torch.arange(count),
        torch.full((count,), 4),
        Errors(ulp, ulp, ulp, plain, finite, 0.0),
    )
    centre = summary_of(batch).regions[Region.CENTRE]
    assert centre.signed_sum == count * 2**44
    assert centre.large_square_sum == count * 2**44
    assert centre.clipped == count


def test_nothing_is_known_of_an_empty_region() -> None:
    empty = RegionSummary()
    assert math.isnan(empty.mean_error_ulp)
    assert math.isnan(empty.rms_error_ulp)
    assert empty.worst is None
    assert not np.any(empty.histogram)
