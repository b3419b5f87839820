"""Error over bound, from hand-made bounds whose ratios are known."""

import math

import pytest
import torch

from gelu_verify import contracts, formats
from gelu_verify.bounds import Bounded
from gelu_verify.checks.fused.ratios import Ratios, judged, judged_result
from gelu_verify.inputs.problems import parse
from tests.checks.fused import listed_cases

FP32, BF16 = formats.get("fp32"), formats.get("bf16")
CANCELLING = contracts.get("cancelling")


def bounded(values, slack, own=0.0):
    value = torch.tensor(values, dtype=torch.float64)
    return Bounded(value, torch.full_like(value, own), {"sum": torch.full_like(value, slack)})


def near(ratio):
    """A ratio, but for the 2^-30 by which a total bound is rounded up."""
    return pytest.approx(ratio, rel=2.0**-29)


def ratios(actual, exact, fmt=FP32, contract=CANCELLING, precise=None):
    dtype = torch.bfloat16 if fmt is BF16 else torch.float32
    return judged(torch.tensor(actual, dtype=dtype), exact, fmt, contract, "m=1", precise)


def test_ratio_is_error_over_slack_when_closed():
    found = ratios([1.5, 2.0], bounded([1.0, 2.0], slack=1.0))
    assert (found.max_ratio, found.broken, found.elements) == (pytest.approx(0.5), 0, 2)
    assert found.worst.index == (0,)
    assert found.worst.terms == {"sum": 1.0}


def test_element_breaks_when_its_error_exceeds_the_bound():
    found = ratios([1.0, 4.5], bounded([1.0, 2.0], slack=1.0))
    assert (found.max_ratio, found.broken) == (pytest.approx(2.5), 1)
    assert "1 of 2 elements break their bound" in found.faults["m=1"]


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_element_breaks_when_a_number_is_due(wrong):
    found = ratios([1.0, wrong], bounded([1.0, 2.0], slack=1.0))
    assert found.broken == 1
    assert found.worst.index == (1,)
    assert found.max_ratio == math.inf


def test_infinity_holds_when_the_result_may_overflow():
    largest = FP32.largest
    exact = bounded([largest * 0.999999], slack=largest * 1e-5)
    assert ratios([math.inf], exact).broken == 0
    assert ratios([-math.inf], exact).broken == 1


@pytest.mark.parametrize(
    ("exact", "right", "wrong"),
    [(math.nan, math.nan, 1.0), (math.inf, math.inf, math.nan), (math.inf, math.inf, -math.inf)],
)
def test_kind_is_judged_when_an_element_is_open(exact, right, wrong):
    values = bounded([exact, 1.0], slack=0.5)
    assert (ratios([right, 1.0], values).broken, ratios([right, 1.0], values).open) == (0, 1)
    assert ratios([wrong, 1.0], values).broken == 1


def test_nan_breaks_at_minus_infinity_when_the_contract_wants_zero():
    open_limit = bounded([-0.0], slack=math.inf)
    assert ratios([math.nan], open_limit).broken == 0
    assert ratios([math.nan], open_limit, contract=contracts.get("tail_accurate")).broken == 1


def test_oracle_decides_when_float64_is_no_reference():
    # The reference is off by its own bound: the exact value is 1 + 3/4, the kernel's 1 + 1/2.
    exact = bounded([1.0], slack=0.4, own=0.8)
    found = ratios([1.5], exact, precise=lambda index: 1.75)
    assert (found.broken, found.max_ratio) == (0, pytest.approx(0.625))
    found = ratios([1.0], exact, precise=lambda index: 1.75)
    assert found.broken == 1


def test_elements_are_not_informative_when_the_bound_exceeds_the_value():
    assert ratios([0.5, 3.0], bounded([0.5, 3.0], slack=1.0)).informative == 1


def test_record_says_which_case_when_several_are_joined():
    found = Ratios()
    found.add(judged(torch.tensor([1.0]), bounded([1.0], 1.0), FP32, CANCELLING, "a"))
    found.add(judged(torch.tensor([1.75]), bounded([1.0], 1.0), FP32, CANCELLING, "b"))
    assert [(case.case, case.max_ratio) for case in found.by_case] == [
        ("a", 0.0),
        ("b", pytest.approx(0.75)),
    ]
    assert (found.worst.case, found.max_ratio) == ("b", pytest.approx(0.75))


def test_nothing_is_claimed_when_there_are_no_elements():
    found = judged(torch.empty(0), bounded([], 1.0), FP32, CANCELLING, "m=0")
    assert (found.elements, found.broken, found.worst) == (0, 0, None)


@pytest.mark.parametrize(("value", "breaks"), [(0.0, False), (torch.nan, False), (0.25, True)])
def test_row_without_a_softmax_is_nan_or_zero(value, breaks):
    case = listed_cases.fused_case(lambda *_: None, "attention", "fp32")
    problem = parse("h=1,l=7,d=5,values=masked_rows", case.operator)
    q, k, v = case.inputs(problem)
    result = torch.softmax(q @ k.mT / 5**0.5, -1) @ v
    undefined = case.operator.undefined((q, k, v))
    assert undefined.any(-1).flatten().tolist() == [False, True, False, False, True, False, False]
    result = torch.where(undefined, value, result)
    found = judged_result(case.operator, "erf", (q, k, v), result, case.arithmetic, str(problem))
    assert bool(found.broken) == breaks
