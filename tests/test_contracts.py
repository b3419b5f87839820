"""Contracts as records, their order, and what each built-in one permits."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gelu_verify import contracts
from gelu_verify.contracts import BUILT_IN, Allowance, AllowanceKind, Contract
from gelu_verify.errors import UsageError
from gelu_verify.formats import FORMATS, Format
from gelu_verify.judge import judge
from tests import strategies
from tests.samples import elements

NAMES = ["correctly_rounded", "faithful", "tail_accurate", "saturating", "cancelling"]
NAMES += ["approximation"]


def test_built_in_contracts_are_those_of_the_design_strictest_first() -> None:
    assert [contract.name for contract in BUILT_IN] == NAMES
    assert contracts.DEFAULT == "cancelling"
    assert [contract.max_error_ulp for contract in BUILT_IN] == [0.5, 1 - 2.0**-53, 4, 4, 4, 4]
    kinds = [[allowance.kind.value for allowance in contract.allowances] for contract in BUILT_IN]
    guard, cancellation = "guard", "cancellation"
    assert kinds == [
        [],
        [],
        [],
        [guard],
        [guard, cancellation],
        [guard, cancellation, "approximation"],
    ]
    assert all(allowance.reason for contract in BUILT_IN for allowance in contract.allowances)


def test_only_correctly_rounded_judges_the_derivative_at_infinity() -> None:
    assert [contract.derivative_at_infinity for contract in BUILT_IN] == [True] + [False] * 5


def test_policies_widen_down_the_list() -> None:
    assert [c.minus_infinity.value for c in BUILT_IN] == ["zero"] * 4 + ["any"] * 2
    assert [c.zero_sign.value for c in BUILT_IN] == ["strict"] * 3 + ["any"] * 3
    assert {c.subnormals.value for c in BUILT_IN} == {"ieee"}


@pytest.mark.parametrize("name", NAMES)
def test_contract_is_found_by_its_name(name: str) -> None:
    assert contracts.get(name).name == name


def test_unknown_contract_is_a_usage_error_naming_the_nearest() -> None:
    with pytest.raises(UsageError, match="Did you mean faithful"):
        contracts.get("faithfull")


@pytest.mark.parametrize("limit", [math.nan, 0.0, -1.0])
def test_limit_is_refused_when_it_would_let_nothing_or_everything_pass(limit: float) -> None:
    with pytest.raises(ValidationError):
        Contract(name="mine", summary="", max_error_ulp=limit)
    with pytest.raises(ValidationError):
        Allowance(kind=AllowanceKind.GUARD, reason="", threshold=limit)


def test_contract_is_immutable_and_refuses_unknown_fields() -> None:
    contract = contracts.get("faithful")
    with pytest.raises(ValidationError):
        contract.max_error_ulp = 9.0  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Contract(name="mine", summary="", max_error_ulp=1.0, max_eror=2.0)  # type: ignore[call-arg]


def test_allowance_is_found_by_its_kind() -> None:
    guard = contracts.get("saturating").allowance(AllowanceKind.GUARD)
    assert guard is not None
    assert guard.threshold == 6.0
    assert contracts.get("faithful").allowance(AllowanceKind.GUARD) is None


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16", "fp8_e4m3fn", "fp8_e5m2", "fp64"])
@pytest.mark.parametrize("backward", [False, True])
@settings(max_examples=20)
@given(data=st.data())
def test_contract_permits_all_that_a_stricter_one_permits(
    name: str, backward: bool, data: st.DataObject
) -> None:
    fmt = FORMATS[name]
    x, dy, got = zip(*data.draw(st.lists(_element(fmt), min_size=1, max_size=12)), strict=True)
    part = elements(x, got, fmt, dy=dy if backward else None)
    broken = torch.ones(len(x), dtype=torch.bool)
    for contract in BUILT_IN:
        now = judge(contract, part).broken
        assert not bool((now & ~broken).any()), f"{contract.name} is stricter: {x}, {dy}, {got}"
        broken = now


def _element(fmt: Format) -> st.SearchStrategy[tuple[float, float, float]]:
    """Input, dy and a result that is anything, near the truth, or a typical fault."""
    value = st.one_of(
        strategies.finite_values(fmt),
        st.sampled_from([0.0, -0.0, math.nan]),
        st.sampled_from([fmt.decode(fmt.round(x)) for x in (-13.0, -8.0, -6.0, -3.0, 1.0, 7.0)]),
    )

    def result(pair: tuple[float, float]) -> st.SearchStrategy[float]:
        x, dy = pair
        truth = 0.0 if math.isnan(x) else 0.5 * x * math.erfc(-x / math.sqrt(2))
        near = st.integers(-6, 6).map(lambda n: fmt.neighbour(fmt.decode(fmt.round(truth)), n))
        return st.one_of(value, near, st.sampled_from([x, dy, 0.0, -0.0, math.nan]))

    return st.tuples(value, value).flatmap(lambda pair: result(pair).map(lambda got: (*pair, got)))
