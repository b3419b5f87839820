"""The judge rejects what it must, allows what a contract allows, and counts what it allows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
import torch
from hypothesis import given
from hypothesis import strategies as st

from gelu_verify import contracts, operators
from gelu_verify.allowances import cancellation_ratio
from gelu_verify.contracts import BUILT_IN, Contract
from gelu_verify.elements import Elements
from gelu_verify.errors import EmptySampleError
from gelu_verify.formats import FORMATS
from gelu_verify.judge import Tally, judge
from gelu_verify.measure.error import Class, Errors, measure
from gelu_verify.measure.regions import Region
from gelu_verify.measure.summary import Batch, Sample
from tests import strategies
from tests.samples import as_batch, elements, measured, values

FP64, FP32, BF16, FP16 = (FORMATS[name] for name in ("fp64", "fp32", "bf16", "fp16"))
E4M3 = FORMATS["fp8_e4m3fn"]
NAN, INF = math.nan, math.inf
U = 2.0**-24
every_contract = pytest.mark.parametrize("contract", BUILT_IN, ids=lambda c: c.name)


def grid() -> np.ndarray:
    """fp32 inputs from the deep tail to the saturated side, 0 left out."""
    points = np.concatenate([np.linspace(-12, 12, 1200), [1e-30, 1e-3, -0.75, 50.0, 1e30]])
    return points.astype(np.float32)


def truth(x: np.ndarray) -> np.ndarray:
    """scipy in float64, rounded once: correctly rounded on this grid."""
    wide = x.astype(np.float64)
    return (wide * scipy.special.ndtr(wide)).astype(np.float32)


def results(x: np.ndarray, got: np.ndarray, formula: str = "erf") -> Elements:
    return measured(
        (torch.from_numpy(x),), torch.from_numpy(got.astype(np.float32)), FP32, formula=formula
    )


def broken(contract: Contract | str, part: Elements) -> list[bool]:
    chosen = contracts.get(contract) if isinstance(contract, str) else contract
    return judge(chosen, part).broken.tolist()


def custom(**fields: Any) -> Contract:
    return Contract(name="mine", summary="", **{"max_error_ulp": 4.0, **fields})


@every_contract
def test_correctly_rounded_results_hold_every_contract(contract: Contract) -> None:
    x = grid()
    assert not any(broken(contract, results(x, truth(x))))


FAULTS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "all NaN": lambda x, y: np.full_like(y, np.nan),
    "all zero": lambda x, y: np.zeros_like(y),
    "constant": lambda x, y: np.full_like(y, 0.25),
    "doubled": lambda x, y: 2 * y,
    "negated": lambda x, y: -y,
    "infinite": lambda x, y: np.full_like(y, np.inf),
    "identity": lambda x, y: x,
    "ReLU": lambda x, y: np.maximum(x, 0),
}


@every_contract
@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_output_is_rejected(contract: Contract, fault: str) -> None:
    x = grid()
    part = results(x, FAULTS[fault](x, truth(x)))
    verdicts = judge(contract, part)
    inner = torch.from_numpy((x > -4) & (x < -0.25))
    assert bool(verdicts.broken[inner].all()), "every point of the inner left side is wrong"
    tally = Tally(contract)
    tally.add(verdicts, as_batch(part))
    assert tally.broken == int(verdicts.broken.sum()) > 0
    assert tally.first is not None
    assert tally.worst is not None


@pytest.mark.parametrize("name", ["fp64", "bf16", "fp16", "fp8_e4m3fn", "fp8_e5m2"])
@pytest.mark.parametrize("fault", ["all NaN", "all zero", "constant", "doubled"])
@every_contract
def test_faulty_output_is_rejected_in_other_formats(
    contract: Contract, name: str, fault: str
) -> None:
    fmt = FORMATS[name]
    x = [-2.5, -1.25, -0.5, 0.75, 1.75, 3.0]
    exact = [v * float(scipy.special.ndtr(v)) for v in x]
    got = FAULTS[fault](np.array(x), np.array([fmt.decode(fmt.round(y)) for y in exact]))
    verdicts = broken(contract, elements(x, [fmt.decode(fmt.round(g)) for g in got.tolist()], fmt))
    assert sum(verdicts) >= len(x) - 1


@every_contract
@pytest.mark.parametrize("bad", [NAN, INF, -INF, 0.0, 1.0, -0.16, -0.15])
def test_one_bad_element_is_rejected_and_named(contract: Contract, bad: float) -> None:
    x = grid()
    got = truth(x)
    where = int(np.argmin(np.abs(x + 1.0)))
    got[where] = bad
    part = results(x, got)
    verdicts = judge(contract, part)
    assert verdicts.broken.nonzero().flatten().tolist() == [where]
    tally = Tally(contract)
    tally.add(verdicts, as_batch(part))
    bits = int(x[where : where + 1].view(np.uint32)[0])
    assert tally.broken == 1
    assert tally.first is not None
    assert tally.first.inputs == (bits,)


@every_contract
def test_nan_never_passes_when_a_number_is_due(contract: Contract) -> None:
    x = [-(2.0**99), -20.0, -7.0, -6.0, -1.0, -0.0, 0.0, 2.0**-99, 1.0, 6.0, 2.0**99]
    assert all(broken(contract, elements(x, [NAN] * len(x), FP32)))
    dy = [1.0] * len(x)
    assert all(broken(contract, elements(x, [NAN] * len(x), FP32, dy=dy)))


@every_contract
@pytest.mark.parametrize("field", ["ulp", "absolute", "ulp_size"])
def test_nan_never_passes_when_a_comparator_makes_one(contract: Contract, field: str) -> None:
    part = elements([-1.0, -7.0, 7.0], [0.3125, 0.3125, 0.3125], FP32)
    poisoned = {
        name: getattr(part.errors, name)
        for name in ("ulp", "absolute", "ulp_size", "classes", "finite", "bound")
    }
    poisoned[field] = torch.full((3,), NAN, dtype=torch.float64)
    if field == "ulp_size":
        poisoned["ulp"] = part.errors.ulp * NAN
    errors = Errors(**poisoned)
    spoilt = Elements(part.operator, part.formula, part.fmt, part.inputs, part.actual, errors)
    assert all(broken(contract, spoilt))


@every_contract
def test_nothing_is_no_verdict(contract: Contract) -> None:
    with pytest.raises(EmptySampleError, match="no elements"):
        judge(contract, elements([], [], FP32))


@every_contract
def test_nan_input_must_give_nan(contract: Contract) -> None:
    assert broken(contract, elements([NAN, NAN, NAN], [NAN, 0.0, INF], FP32)) == [
        *(False, True, True)
    ]
    # A guard that selects 0 at x <= -6 or dy at x >= 6 must not swallow the NaN of the other.
    part = elements([-7.0, NAN, -7.0], [0.0, 1.0, NAN], FP32, dy=[NAN, 1.0, NAN])
    assert broken(contract, part) == [True, True, False]


@every_contract
def test_infinities_are_left_to_the_special_values_check(contract: Contract) -> None:
    assert not any(broken(contract, elements([INF, -INF, -INF], [INF, -0.0, NAN], FP32)))


def test_overflow_is_right_where_rounding_overflows() -> None:
    # dy·GELU'(√2) = 1.1289·dy
    for contract in BUILT_IN:
        assert broken(contract, elements([1.5], [INF], FP16, dy=[65504.0])) == [False]
        assert broken(contract, elements([1.5], [65504.0], FP16, dy=[65504.0])) == [True]
        assert broken(contract, elements([1.5], [NAN], E4M3, dy=[448.0])) == [False]
        assert broken(contract, elements([1.5], [448.0], E4M3, dy=[448.0])) == [True]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (0, [False] * 6),
        (1, [True, True, False, False, False, False]),
        (3, [True, True, False, False, False, False]),
        (6, [True] * 6),
    ],
)
def test_limits_at_a_value_next_to_the_exact_one(steps: int, expected: list[bool]) -> None:
    # GELU(1) = 0.841344746068542948..., 0.4 of a spacing of fp32 from the nearest number.
    nearest = float(np.float32(0.841344746068542948))
    away = 1 if nearest > 0.841344746068542948 else -1
    got = FP32.neighbour(nearest, away * steps)
    assert [broken(contract, elements([1.0], [got], FP32))[0] for contract in BUILT_IN] == expected


def test_faithful_takes_both_neighbours_of_the_exact_value() -> None:
    y = 0.841344746068542948
    nearest = float(np.float32(y))
    other = FP32.neighbour(nearest, 1 if nearest < y else -1)
    part = elements([1.0, 1.0], [nearest, other], FP32)
    assert broken("faithful", part) == [False, False]
    assert broken("correctly_rounded", part) == [False, True]


@pytest.mark.parametrize("fmt", [FP32, FP64, BF16, FP16], ids=lambda f: f.name)
@pytest.mark.parametrize(
    ("half_quanta", "got", "correct"),
    [
        # GELU(x) of a subnormal is x/2·(1 + 0.8x): an odd x is next to a tie, on the side of +∞.
        (1, 0, False),
        (1, 1, True),
        (3, 1, False),
        (3, 2, True),
        (5, 2, False),
        (5, 3, True),
        (-1, 0, True),
        (-1, -1, False),
        (-3, -1, True),
        (-3, -2, False),
    ],
)
def test_correctly_rounded_is_decided_on_the_right_side_of_a_tie(
    fmt: Any, half_quanta: int, got: int, correct: bool
) -> None:
    quantum = fmt.smallest_subnormal
    result = math.copysign(got * quantum, half_quanta)
    part = elements([half_quanta * quantum], [result], fmt)
    assert broken("correctly_rounded", part) == [not correct]


@pytest.mark.parametrize("fmt", [FP32, FP64], ids=lambda f: f.name)
def test_step_below_a_power_of_two_is_not_correctly_rounded(fmt: Any) -> None:
    # GELU(2^-60) is just above 2^-61: the number below is 0.5 ULP away, and not the nearest.
    got = [2.0**-61, fmt.neighbour(2.0**-61, -1)]
    assert broken("correctly_rounded", elements([2.0**-60] * 2, got, fmt)) == [False, True]
    # GELU'(0) = 1/2 exactly.
    got = [0.5, fmt.neighbour(0.5, -1), fmt.neighbour(0.5, 1)]
    part = elements([0.0] * 3, got, fmt, dy=[1.0] * 3)
    assert broken("correctly_rounded", part) == [False, True, True]


def test_oracle_decides_when_the_bound_leaves_everything_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = grid()[::40]
    right = truth(x)
    wrong = np.nextafter(right, np.float32(0))
    parts = [results(x, right), results(x, wrong)]
    expected = [broken("correctly_rounded", part) for part in parts]
    asked = 0
    for part, verdicts in zip(parts, expected, strict=True):
        e = part.errors
        # Results of the fast path that are wrong by a factor, with a bound that admits it.
        spoilt = Errors(e.ulp * 0 + 0.75, e.absolute, e.ulp_size, e.classes, e.finite, 1e9)
        precise = part.operator.precise

        def counted(*arguments: Any, call: Any = precise) -> Any:
            nonlocal asked
            asked += 1
            return call(*arguments)

        monkeypatch.setattr(type(part.operator), "precise", staticmethod(counted))
        again = Elements(part.operator, "erf", FP32, part.inputs, part.actual, spoilt)
        assert broken("correctly_rounded", again) == verdicts
        monkeypatch.undo()
    assert asked == 2
    assert not any(expected[0])
    assert sum(expected[1]) > len(x) // 2


def test_oracle_is_not_asked_when_the_bound_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    x = grid()
    part = results(x, truth(x))

    def refuse(*_: Any) -> Any:
        raise AssertionError("the oracle was asked")

    monkeypatch.setattr(type(part.operator), "precise", refuse)
    assert not any(broken("tail_accurate", part))


# --- allowances


def test_guard_covers_from_its_threshold_on_and_not_before() -> None:
    x = [-6.0, -7.0, -13.0, -5.99, -5.9999995231628, 6.0, 7.0, 5.99]
    x = [float(np.float32(v)) for v in x]
    got = [0.0, -0.0, 0.0, 0.0, 0.0, 6.0, 7.0, float(np.float32(5.99))]
    part = elements(x, got, FP32)
    expected = [False, False, False, True, True, False, False, False]
    assert broken("saturating", part) == expected
    assert broken("tail_accurate", part) == [True] * 5 + [False] * 3
    used = judge(contracts.get("saturating"), part).by_allowance
    assert list(used) == ["guard"]
    # On the positive side the guard is free in fp32: no allowance is used.
    assert used["guard"].tolist() == [True] * 3 + [False] * 5


def test_guard_covers_only_what_a_guard_returns() -> None:
    part = elements([-7.0, -7.0, 7.0, 7.0], [-7.0, 2.0**-99, 0.0, 8.0], FP32)
    assert all(broken("saturating", part))


def test_guard_costs_an_allowance_on_the_positive_side_in_fp64() -> None:
    part = elements([6.0, 7.0, 5.99], [6.0, 7.0, 5.99], FP64)
    assert broken("tail_accurate", part) == [True, True, True]
    verdicts = judge(contracts.get("saturating"), part)
    assert verdicts.broken.tolist() == [False, False, True]
    assert verdicts.by_allowance["guard"].tolist() == [True, True, False]


def test_guard_of_the_derivative_returns_dy() -> None:
    part = elements([-6.0, 6.0, 6.0, -5.99, -6.0], [0.0, 3.0, 1.0, 0.0, 3.0], FP64, dy=[3.0] * 5)
    assert broken("saturating", part) == [False, False, True, True, True]


def test_threshold_of_the_guard_is_the_contracts_own() -> None:
    guard = {"kind": "guard", "reason": "8.485", "threshold": 8.485}
    mine = custom(allowances=(guard,), zero_sign="any")
    assert broken(mine, elements([-8.0, -8.5], [0.0, 0.0], FP32)) == [True, False]


@pytest.mark.parametrize("x", [-5.5, -4.0, -2.0, -1.0])
def test_cancellation_covers_up_to_x_times_u_exactly(x: float) -> None:
    # In fp64 an error of |x|·2^-53 is no multiple of anything; the figure is set by hand.
    part = elements([x], [x * float(scipy.special.ndtr(x))], FP64)
    slack = abs(x) * 2.0**-53
    for absolute, holds in [
        (slack, True),
        (math.nextafter(slack, 1.0), False),
        (math.nextafter(slack, 0.0), True),
        (NAN, False),
    ]:
        e = part.errors
        far = torch.tensor([1e6], dtype=torch.float64)
        wide = torch.tensor([absolute], dtype=torch.float64)
        errors = Errors(far, wide, e.ulp_size, e.classes, e.finite, 0.0)
        spoilt = Elements(part.operator, "erf", FP64, part.inputs, part.actual, errors)
        assert broken("cancelling", spoilt) == [not holds], absolute / slack
        assert broken("saturating", spoilt) == [True]


def test_textbook_form_in_fp32_holds_cancelling_only() -> None:
    x = grid()
    half = np.float32(0.5)
    erf = scipy.special.erf(x.astype(np.float64) / math.sqrt(2)).astype(np.float32)
    part = results(x, half * x * (np.float32(1) + erf))
    assert not any(broken("cancelling", part))
    assert any(broken("saturating", part))
    used = judge(contracts.get("cancelling"), part).by_allowance["cancellation"]
    assert bool(((part.x > -6) & (part.x < -4))[used].any())
    assert not bool((part.x > 0)[used].any())
    # A correctly rounded erf in (-1, -1/2) is off by up to 2^-25, and x/2 multiplies that.
    assert 0.2 < float(cancellation_ratio(part)[part.x < -3].max()) <= 0.25


def erfc_form(x: np.ndarray, constant: float = math.sqrt(0.5)) -> np.ndarray:
    """0.5x·erfc(-x√½) in fp32, with the only error that a correct erfc leaves: its argument."""
    argument = (-x * np.float32(constant)).astype(np.float64)
    return (0.5 * x.astype(np.float64) * scipy.special.erfc(argument)).astype(np.float32)


def test_rounded_argument_of_erfc_is_explained_far_left_and_no_more() -> None:
    x = np.linspace(-13.9, -6.5, 4001, dtype=np.float32)[:-1]
    part = results(x, erfc_form(x))
    assert float(part.errors.ulp.abs().max()) > 100
    assert any(broken("saturating", part))
    assert not any(broken("cancelling", part))
    assert 0.2 < float(cancellation_ratio(part).max()) < 1
    # 0.70711 is 4.6e-6 of √½ off, 38 of its roundings. Subnormal results do not show it.
    x = x[x > -13]
    assert all(broken("cancelling", results(x, erfc_form(x, 0.70711))))


def test_rounded_argument_of_the_tanh_form_s_exponential_is_explained() -> None:
    x = np.linspace(-9.0, -6.5, 4001, dtype=np.float32)[:-1]
    one, c = np.float32(1), np.float32(math.sqrt(2 / math.pi))
    twice_u = np.float32(2) * c * x * (one + np.float32(0.044715) * x * x)
    tail = (x / (1 + np.exp(-twice_u.astype(np.float64)))).astype(np.float32)
    part = results(x, tail, formula="tanh")
    assert float(part.errors.ulp.abs().max()) > 8
    assert not any(broken("cancelling", part))
    assert any(broken("cancelling", results(x, tail * np.float32(1.0001), formula="tanh")))


def test_factor_of_cancellation_scales_the_slack() -> None:
    y = -5.0 * float(scipy.special.ndtr(-5.0))
    part = elements([-5.0], [float(np.float32(y + 0.4 * 5.0 * U))], FP32)
    assert float(cancellation_ratio(part)[0]) == pytest.approx(0.4, abs=1e-3)
    for factor, expected in [(0.39, True), (0.41, False)]:
        allowance = {"kind": "cancellation", "reason": "", "factor": factor}
        assert broken(custom(allowances=(allowance,)), part) == [expected]


def test_unit_of_cancellation_is_that_of_fp32_below_fp64() -> None:
    y = -3.0 * float(scipy.special.ndtr(-3.0))
    got = BF16.decode(BF16.round(y * 1.0625))
    ratio = abs(got - y) / (3.0 * U)
    part = elements([-3.0], [got], BF16)
    assert float(cancellation_ratio(part)[0]) == pytest.approx(ratio, rel=1e-9)
    assert broken("cancelling", part) == [True]


def test_approximation_lets_the_tanh_form_stand_in_and_no_other() -> None:
    x = grid()
    wide = x.astype(np.float64)
    inner = 2 * math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
    tanh = results(x, wide * scipy.special.expit(inner))
    sigmoid = results(x, wide * scipy.special.expit(1.702 * wide))
    assert not any(broken("approximation", tanh))
    assert any(broken("cancelling", tanh))
    assert any(broken("approximation", sigmoid))
    used = judge(contracts.get("approximation"), tanh).by_allowance
    assert int(used["approximation"].sum()) > 300
    other = custom(allowances=({"kind": "approximation", "reason": "", "formula": "sigmoid"},))
    assert not any(broken(other, sigmoid))


# --- policies


@pytest.mark.parametrize(("x", "got"), [(-0.0, 0.0), (0.0, -0.0), (-100.0, 0.0), (-15.0, 0.0)])
def test_sign_of_zero_is_judged_when_strict(x: float, got: float) -> None:
    part = elements([x, x], [got, math.copysign(0.0, x)], FP32)
    expected = {"correctly_rounded": True, "faithful": True, "tail_accurate": True}
    for contract in BUILT_IN:
        assert broken(contract, part) == [expected.get(contract.name, False), False]
    # No allowance excuses what the policy judges.
    strict = custom(allowances=contracts.get("approximation").allowances, zero_sign="strict")
    assert broken(strict, part) == [True, False]


def flushing(policy: str) -> Contract:
    return custom(subnormals=policy)


def test_subnormals_may_be_flushed_as_the_policy_says() -> None:
    # A subnormal input, a subnormal result of a normal input, a normal result.
    x = [100 * 2.0**-149, -14.0, -12.0]
    part = elements(x, [0.0, -0.0, -0.0], FP32)
    assert broken(flushing("ieee"), part) == [True, True, True]
    assert broken(flushing("flush_inputs"), part) == [False, True, True]
    assert broken(flushing("flush_outputs"), part) == [False, False, True]
    assert broken(flushing("flush"), part) == [False, False, True]
    used = judge(flushing("flush"), part).by_allowance
    assert used["flush"].tolist() == [True, True, False]


def test_flushed_dy_is_a_flushed_input() -> None:
    below = 2.0**-126 - 2.0**-149
    # The second product, 1.1·dy, is a normal number.
    part = elements([1.0, 1.0, 2.0**-140], [0.0] * 3, FP32, dy=[2.0**-130, below, 2.0**-126])
    assert broken(flushing("ieee"), part) == [True, True, True]
    assert broken(flushing("flush_inputs"), part) == [False, False, True]
    assert broken(flushing("flush_outputs"), part) == [False, True, False]
    assert broken(flushing("flush"), part) == [False, False, False]


# --- tallies


def test_uses_are_counted_per_allowance_and_region() -> None:
    x = [-13.0, -8.0, -6.0, -5.5, -4.0, -2.0, 1.0]
    got = [0.0, 0.0, 0.0, 0.0, float(np.float32(-4.0 * 3.17e-5)), 1.0, 0.8413447]
    part = elements(x, [float(np.float32(g)) for g in got], FP32)
    contract = contracts.get("cancelling")
    tally = Tally(contract)
    tally.add(judge(contract, part), as_batch(part))
    counts = {(name, region.value): use.count for (name, region), use in tally.usage.items()}
    assert counts == {
        ("guard", "deep_tail"): 3,
        ("cancellation", "tail"): 2,
    }
    worst = tally.usage["guard", Region.DEEP_TAIL].worst
    assert worst is not None
    # Of three collapses the one with the most ULP: y/ulp(y) is from 2^23 to 2^24.
    assert 2.0**23 <= abs(worst.error_ulp) < 2.0**24
    assert tally.broken == 1
    assert tally.worst is not None
    assert tally.worst.inputs == (0xC0000000,)


@st.composite
def sweeps(draw: st.DrawFn) -> tuple[Contract, Batch, Elements]:
    contract = draw(st.sampled_from(BUILT_IN))
    x = draw(
        st.lists(
            st.one_of(strategies.finite_values(BF16), st.floats(-14, 8, width=16)),
            min_size=2,
            max_size=25,
        )
    )
    x = [BF16.decode(BF16.round(v)) for v in x]
    x = [*x, 0.0]
    fault = st.sampled_from(["zero", "x", "nan", "half"])
    got = [{"zero": 0.0, "x": v, "nan": NAN, "half": v / 2}[draw(fault)] for v in x]
    part = elements(x, [BF16.decode(BF16.round(g)) for g in got], BF16)
    return contract, as_batch(part), part


def _usage(tally: Tally) -> Any:
    def shown(sample: Sample | None) -> Any:
        return sample and (sample.inputs, sample.actual, sample.error_ulp.hex())

    usage = {key: (use.count, shown(use.worst)) for key, use in tally.usage.items()}
    return tally.broken, shown(tally.first), shown(tally.worst), usage


@given(sweep=sweeps(), data=st.data())
def test_tally_is_identical_when_split_in_any_way(
    sweep: tuple[Contract, Batch, Elements], data: st.DataObject
) -> None:
    contract, batch, part = sweep
    whole = Tally(contract)
    whole.add(judge(contract, part), batch)
    tallies = []
    for chunk in data.draw(strategies.chunkings(len(batch.errors))):
        some = part.select(torch.tensor(chunk))
        tallies.append(Tally(contract))
        tallies[-1].add(judge(contract, some), as_batch(some))
    while len(tallies) > 1:
        left = tallies.pop(data.draw(st.integers(0, len(tallies) - 1)))
        left.merge(tallies.pop(data.draw(st.integers(0, len(tallies) - 1))))
        tallies.append(left)
    assert _usage(tallies[0]) == _usage(whole)


def test_selection_keeps_inputs_and_results_together() -> None:
    part = elements([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], FP32, dy=[7.0, 8.0, 9.0])
    some = part.select(torch.tensor([True, False, True]))
    assert some.x.tolist() == [1.0, 3.0]
    assert some.inputs[0].tolist() == [7.0, 9.0]
    assert torch.equal(some.actual, values([4.0, 6.0], FP32))
    assert len(some.errors) == 2


def test_infinity_is_no_rounding_of_a_value_that_the_format_holds() -> None:
    largest = 2.0**128 - 2.0**104
    part = elements([largest, 2.0**127], [math.inf, math.inf], FP32)
    assert broken("cancelling", part) == [True, True]
    part = elements([largest], [largest], FP32)
    assert broken("correctly_rounded", part) == [False]


def test_largest_value_is_within_an_ulp_of_an_overflow() -> None:
    # dy·GELU'(5.8) is 1.8 ULP above the largest value: it rounds to inf.
    operator = operators.get("gelu_backward")
    largest = 2.0**128 - 2.0**104
    dy, x = torch.tensor([largest]), torch.tensor([5.8])
    inputs = (dy, x)
    exact = operator.exact(inputs, "erf", FP32)
    errors = measure(torch.tensor([largest]), exact, FP32)
    part = Elements(operator, "erf", FP32, inputs, torch.tensor([largest]), errors)
    assert int(errors.classes[0]) == int(Class.LOST_INFINITY)
    assert broken("tail_accurate", part) == [False]
    assert broken("correctly_rounded", part) == [True]
