"""Figures: what they draw is what the records say."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import mpmath
import pytest

from gelu_verify.baseline import Measurement
from gelu_verify.measure import histogram as bins
from gelu_verify.records import BinadeErrors, Speed
from gelu_verify.report import files
from gelu_verify.report.site import axes, pages
from gelu_verify.report.site.entry import Entry
from gelu_verify.report.site.figures import (
    comparison,
    distribution,
    error,
    figure,
    fused,
    speed,
    tail,
)
from gelu_verify.report.site.points import named, swept
from tests.report.site.conftest import REPORTS

EXHAUSTIVE = files.read(REPORTS / "cpu" / "exhaustive_fp32.json")
FUSED = files.read(REPORTS / "cpu" / "fused.json")
ROUTES = files.read(REPORTS / "cpu" / "fused_routes.json")
ERF = EXHAUSTIVE.kernels[0]
#: The same kernel and format, of a sweep that kept the errors of every binade.
ENVELOPED = next(
    k
    for k in files.read(REPORTS / "cpu" / "check.json").kernels
    if (k.label, k.format) == ("torch-erf", "fp32")
)


def as_entry(results, result):
    return Entry(result, results.environment, "f.json", "slug", None, None)


@pytest.mark.parametrize("results", [EXHAUSTIVE, FUSED], ids=["elementwise", "fused"])
def test_every_figure_is_one_that_plotly_accepts(results):
    objects = pytest.importorskip("plotly.graph_objects", reason="the extra report is missing")
    by_kind = {(r.operator, r.format): r for r in results.kernels}
    seen = set()
    for result in by_kind.values():
        for one in pages.figures(as_entry(results, result)):
            objects.Figure(one.spec)  # raises for a name or value that plotly does not know
            assert one.caption.endswith(".")
            assert all(len(row) == len(one.header) for row in one.rows)
            seen.add(one.key)
    assert seen >= {"error", "tail", "histogram", "cdf"}


def _without_envelope(result):
    accuracy = result.accuracy.model_copy(update={"envelope": ()})
    return result.model_copy(update={"accuracy": accuracy})


@pytest.mark.parametrize("result", [_without_envelope(ERF), ENVELOPED], ids=["regions", "binades"])
def test_the_band_holds_every_named_point_and_reaches_the_largest_error(result):
    upper, lower, mean, points = error.against_x(result).data
    largest = max(*upper["y"], -min(lower["y"]))
    assert largest == pytest.approx(axes.height(result.accuracy.max_error_ulp), abs=1e-3)
    spans = list(zip(upper["x"][::2], upper["x"][1::2], lower["y"][::2], upper["y"][::2],
                     mean["y"][::2], strict=True))  # fmt: skip
    assert spans[0][0] == -axes.EDGE
    assert spans[-1][1] == axes.EDGE
    assert all(one[1] == other[0] for one, other in pairwise(spans))
    assert all(low <= middle <= top for _, _, low, top, middle in spans)
    named = list(zip(points["x"], points["y"], strict=True))
    assert len(named) > 5
    for x, y in named:
        around = [s for s in spans if s[0] - 0.01 <= x <= s[1] + 0.01]
        assert any(low - 1e-3 <= y <= top + 1e-3 for _, _, low, top, _ in around)


def test_the_band_is_the_envelope_where_the_record_has_one():
    reach = BinadeErrors(sign="-", exponent=1, count=3, lowest_error_ulp=-7.0,
                         highest_error_ulp=1.0, mean_error_ulp=-3.0)  # fmt: skip
    accuracy = ERF.accuracy.model_copy(update={"envelope": (reach,)})
    upper, lower, mean, _ = error.against_x(ERF.model_copy(update={"accuracy": accuracy})).data
    assert upper["x"] == [axes.place(-4.0), axes.place(-2.0)]
    assert (upper["y"], lower["y"], mean["y"]) == ([1.0] * 2, [-3.0] * 2, [-2.0] * 2)


def test_no_binade_is_left_out():
    found = error.by_binade(ERF)
    assert len(found.data[0]["x"]) == 82
    largest = max(b.max_error_ulp for b in ERF.accuracy.binades)
    assert max(found.data[0]["y"]) == pytest.approx(axes.height(largest), abs=1e-3)
    assert len(found.rows) == sum(b.max_error_ulp > 0 for b in ERF.accuracy.binades)


def test_the_tail_is_the_exact_function():
    found = tail.tail(ERF)
    curve = found.data[0]
    for x, y in list(zip(curve["x"], curve["y"], strict=True))[::16]:
        with mpmath.workprec(300):
            exact = -mpmath.mpf(x) * mpmath.erfc(-mpmath.mpf(x) / mpmath.sqrt(2)) / 2
        assert y == pytest.approx(float(mpmath.log10(exact)), abs=2e-3)
    assert found.data[2]["x"]  # torch's erf gives 0 in the tail
    assert {shape["x0"] for shape in found.layout["shapes"]} == {
        ERF.saturation.zero_from, ERF.saturation.zero_needed_from
    }  # fmt: skip


def test_histogram_and_shares_count_every_error():
    a = ERF.accuracy
    assert sum(distribution.histogram(a).data[0]["y"]) == a.count
    cdf = distribution.cumulative(a, None)
    shares = cdf.data[0]["y"]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    half = next(x for x, y in zip(cdf.data[0]["x"], shares, strict=True) if y >= 0.5)
    assert half == pytest.approx(math.log2(a.quantiles["0.5"]), abs=1e-3)
    assert bins.LOWEST == -16


def test_a_baseline_of_other_inputs_is_said_to_be_so_beside_the_shares():
    before = Measurement.of(ERF)
    assert "quantiles of the baseline." in distribution.cumulative(ERF.accuracy, before).caption
    other = distribution.cumulative(ENVELOPED.accuracy, before)
    assert "of other inputs." in other.caption
    marks = other.data[1]
    known = dict(zip(marks["y"], marks["x"], strict=True))
    assert known[0.999] == pytest.approx(math.log2(ERF.accuracy.quantiles["0.999"]))


def test_the_ladder_has_a_mark_for_each_case_with_a_length():
    result = next(k for k in FUSED.kernels if k.name == "cpp-linear-gelu")
    found = fused.ladder(result)
    lengths = {4096 if "k=4096" in c.case else None for c in result.bound.by_case} - {None}
    assert [t["mode"] for t in found.data] == ["markers"] * 4 + ["lines"] * 4
    assert max(found.data[0]["y"]) == pytest.approx(result.bound.max_ratio)
    marks, line = found.data[0], found.data[4]
    assert line["x"] == sorted(set(marks["x"]))
    for x, top in zip(line["x"], line["y"], strict=True):
        assert top == max(y for at, y in zip(marks["x"], marks["y"], strict=True) if at == x)
    assert lengths <= set(found.data[0]["x"])
    assert fused._size("m=5,layout.k=3,k=17,seed=1", "k") == 17
    assert fused._size("m=5,n=7", "k") is None


def test_the_terms_of_a_bound_add_up_to_it():
    result = next(k for k in ROUTES.kernels if k.name == "torch-linear-gelu")
    found = fused.terms(result)
    *bars, marks = found.data
    assert sum(trace["x"][0] for trace in bars) == pytest.approx(1.0, rel=1e-6)
    assert marks["x"][0] == result.bound.worst.ratio


@pytest.fixture
def broken():
    """Return a result with an infinite error over bound, as a NaN in place of a number gives."""
    result = next(k for k in ROUTES.kernels if k.name == "torch-linear-gelu")
    case = result.bound.by_case[0].model_copy(update={"max_ratio": math.inf})
    worst = result.bound.worst.model_copy(update={"ratio": math.inf, "error": math.inf})
    changed = {"by_case": (case, *result.bound.by_case[1:]), "worst": worst, "max_ratio": math.inf}
    return result.model_copy(update={"bound": result.bound.model_copy(update=changed)})


@pytest.mark.parametrize("make", [fused.terms, fused.ladder])
def test_an_infinite_ratio_is_drawn_beyond_all_others_and_is_json(broken, make):
    found = make(broken)
    spec = json.dumps(found.spec, allow_nan=False)
    finite = json.dumps(make(next(k for k in ROUTES.kernels if k.name == broken.name)).spec)
    assert spec != finite
    axis = "x" if make is fused.terms else "y"
    marks = [v for t in found.data if t.get("mode") == "markers" for v in t[axis]]
    assert max(marks) >= 10.0
    assert max(marks) == sorted(marks)[-1] != sorted(marks)[-2]
    assert any("inf" in cell for row in found.rows for cell in row)


def test_what_is_no_number_is_a_gap_in_a_figure():
    one = figure.Figure("k", "t", "c", [{"y": [1.0, math.nan, -math.inf, (2.0, math.inf)]}])
    assert one.spec["data"] == [{"y": [1.0, None, None, [2.0, None]]}]


def test_an_infinite_ratio_does_not_hide_the_others_of_a_comparison(broken):
    entries = [as_entry(FUSED, k) for k in FUSED.kernels[:2]] + [as_entry(FUSED, broken)]
    (bars,) = comparison.by_bound(entries, "k").data
    assert bars["x"][-1] == 2.0
    assert bars["text"][-1] == "inf"
    json.dumps(bars, allow_nan=False)


def test_kernels_are_compared_only_where_there_are_two():
    entries = [as_entry(EXHAUSTIVE, k) for k in EXHAUSTIVE.kernels]
    assert comparison.by_region(entries[:1], "k") is None
    assert len(comparison.by_region(entries, "k").data) == 4
    assert comparison.by_bound(entries, "k") is None


def test_every_bar_and_line_has_a_name_of_its_own_when_a_kernel_was_measured_twice():
    one = next(k for k in FUSED.kernels if k.name == "torch-geglu" and k.format == "bf16")
    more = one.bound.model_copy(update={"cases": one.bound.cases + 1})
    again = one.model_copy(update={"bound": more, "accuracy": None})
    entries = [as_entry(FUSED, one), as_entry(FUSED, again), as_entry(FUSED, again)]
    entries = [replace(e, slug=f"s{i}") for i, e in enumerate(entries)]
    assert len(set(comparison.names(entries))) == 3
    bars = comparison.by_bound(entries, "k").data[0]
    assert len(set(bars["y"])) == len(bars["x"]) == 3  # bars of one name would be stacked


def test_accuracy_is_drawn_against_speed_when_two_kernels_were_timed():
    def timed(result, us):
        found = Speed(case="n=1000", elements=1000, moved_bytes=8000, calls=9, call_us=us,
                      low_us=us, high_us=us, threads=1, method="m")  # fmt: skip
        return as_entry(EXHAUSTIVE, result.model_copy(update={"speed": found}))

    first, _, second, _ = EXHAUSTIVE.kernels
    assert speed.by_speed([timed(first, 2.0), as_entry(EXHAUSTIVE, second)], "k") is None
    worse = first.accuracy.model_copy(update={"max_error_ulp": 1e9})
    sweep = as_entry(EXHAUSTIVE, first.model_copy(update={"accuracy": worse}))
    found = speed.by_speed([timed(first, 2.0), timed(second, 3.0), sweep], "k")
    assert [t["x"] for t in found.data] == [[2.0], [3.0]]
    assert [t["y"] for t in found.data] == [[1e9], [second.accuracy.max_error_ulp]]
    assert found.rows[0][2:4] == ("2", "4")


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1.0, 1e6], ["1", "100", "10<sup>4</sup>", "10<sup>6</sup>"]),
        ([0.4, 3.0], ["0.5", "1", "2"]),
        ([2e-5, 4e-5], ["2·10<sup>-5</sup>", "5·10<sup>-5</sup>"]),
        ([math.inf, 0.0], ["1"]),
    ],
)
def test_ticks_of_a_logarithmic_axis_are_named(values, texts):
    axis = figure.log_axis("t", values)
    assert axis["ticktext"] == texts
    assert len(axis["tickvals"]) == len(texts)


def test_named_points_are_told_once_the_largest_error_first():
    found = named(ERF.accuracy)
    assert found[0].point == ERF.accuracy.worst
    keys = [(tuple(one.point.bits.values()), one.point.actual_bits) for one in found]
    assert len(set(keys)) == len(keys)
    assert swept(found[0].point) == float(ERF.accuracy.worst.inputs["x"])


def test_labels_show_markup_as_text():
    assert figure.plain("<b>&") == "&lt;b&gt;&amp;"
