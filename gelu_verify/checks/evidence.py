"""What the accuracy check judges: the results of a sweep, or the census of every input of fp32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gelu_verify.allowances import cancellation_ratio, rounds_intermediate
from gelu_verify.checks.case import Case
from gelu_verify.contracts import BUILT_IN, Contract
from gelu_verify.contracts import get as get_contract
from gelu_verify.exhaustive.census import Census
from gelu_verify.judge import Tally, judge
from gelu_verify.measure import envelope
from gelu_verify.measure.envelope import Reach
from gelu_verify.measure.error import Class
from gelu_verify.measure.summary import Summary
from gelu_verify.records import PAIRS, BinadeErrors, BinadeMaximum, Reversals, Tightest

#: Wider than any bound of the reference, in ULP.
_NEAR = 1e-3
_PATTERNS = 1 << 32
_BINADES_A_SIGN = 255


@dataclass(frozen=True)
class Evidence:
    """Figures, verdicts, and where they come from.

    origin: the fields of the accuracy record that say so: sweep, exhaustive, seed, inputs_digest;
    from a census also what only every input can tell.
    """

    summary: Summary
    tally: Tally
    tightest: Tightest
    origin: dict[str, Any]


def evidence(case: Case) -> list[Evidence]:
    """Return all that is to be judged; the first is what the record shows.

    A census is of dy = 1 alone: a backward is judged on its sweep of other dy as well.
    """
    if case.pairs is not None:
        return [_of_pairs(case, case.pairs)]
    census = case.census
    if census is None:
        return [_of_sweep(case)]
    found = [_of_census(case, census)]
    return [*found, _of_sweep(case)] if case.subject.operator.derivative else found


def tallied(case: Case, contract: Contract) -> Tally:
    """Return the verdicts of a contract over the case's sweep."""
    tally = Tally(contract)
    errors = case.elements.errors
    # An ordinary element well within the limit holds; only the others are judged.
    near = ~(errors.ulp.abs() < contract.max_error_ulp - _NEAR) | ~errors.finite
    suspects = (near | (errors.classes != int(Class.NONE))).nonzero().flatten()
    if suspects.numel():
        tally.add(judge(contract, case.elements.select(suspects)), case.batch.select(suspects))
    return tally


def _of_sweep(case: Case) -> Evidence:
    summary = Summary()
    summary.add(case.batch)
    sweep = case.sweep
    origin = {
        "sweep": sweep.name,
        "exhaustive": sweep.exhaustive,
        "seed": sweep.seed,
        "inputs_digest": sweep.digest,
        "envelope": _envelope(envelope.reaches(case.elements.x, case.elements.errors)),
    }
    holding = next((c.name for c in BUILT_IN if tallied(case, c).broken == 0), None)
    errors = case.elements.errors
    sizes = errors.ulp[errors.finite].abs()
    largest = float(sizes.max()) if sizes.numel() else float("nan")
    best = Tightest(contract=holding, max_error_ulp=largest, cancellation=_cancellation(case))
    return Evidence(summary, tallied(case, case.contract), best, origin)


def _envelope(found: list[Reach]) -> tuple[BinadeErrors, ...]:
    return tuple(
        BinadeErrors(
            sign="-" if reach.negative else "+",
            exponent=reach.exponent,
            count=reach.count,
            lowest_error_ulp=reach.lowest_ulp,
            highest_error_ulp=reach.highest_ulp,
            mean_error_ulp=reach.mean_ulp,
        )
        for reach in found
    )


def _cancellation(case: Case) -> float | None:
    """Return the largest error of the sweep in units of |x|·u, of those beyond 4 ULP.

    What a rounded intermediate explains by itself needs no other reason.
    """
    errors = case.elements.errors
    beyond = case.elements.select(errors.finite & (errors.ulp.abs() > 4.0))
    if case.subject.operator.intermediate is not None and len(beyond.errors):
        beyond = beyond.select(~rounds_intermediate(get_contract("tail_accurate"), beyond))
    return float(cancellation_ratio(beyond).max()) if len(beyond.errors) else None


def _of_census(case: Case, census: Census) -> Evidence:
    total = census.summary.total()
    origin = {
        "sweep": "exhaustive",
        "exhaustive": census.patterns == _PATTERNS,
        "seed": case.job.seed,
        "inputs_digest": "all patterns",
        "binades": _binades(census),
        "envelope": _envelope(envelope.of_binades(census.spreads)),
        "reversals": _reversals(case, census),
        "nan_inputs": census.nan_inputs,
        "infinite_inputs": census.infinite_inputs,
    }
    best = Tightest(
        contract=next((c.name for c in BUILT_IN if _holds(case, census, c)), None),
        max_error_ulp=total.max_error_ulp if total.count else float("nan"),
        cancellation=_cancellation(case),
    )
    return Evidence(census.summary, _tally(census, case.contract), best, origin)


def _of_pairs(case: Case, census: Census) -> Evidence:
    total = census.summary.total()
    origin = {
        "sweep": PAIRS,
        "exhaustive": census.patterns == _PATTERNS,
        "seed": case.job.seed,
        "inputs_digest": "all pairs",
        "nan_inputs": census.nan_inputs,
        "infinite_inputs": census.infinite_inputs,
    }
    best = Tightest(
        contract=next((c.name for c in BUILT_IN if not _is_broken(census, c)), None),
        max_error_ulp=total.max_error_ulp if total.count else float("nan"),
        cancellation=_cancellation(case),
    )
    return Evidence(census.summary, _tally(census, case.contract), best, origin)


def _is_broken(census: Census, contract: Contract) -> bool:
    return contract.name in census.broken or _tally(census, contract).broken > 0


def _tally(census: Census, contract: Contract) -> Tally:
    return census.tallies.get(contract.name, Tally(contract))


def _holds(case: Case, census: Census, contract: Contract) -> bool:
    if _tally(census, contract).broken:
        return False
    return not case.subject.operator.derivative or tallied(case, contract).broken == 0


def _binades(census: Census) -> tuple[BinadeMaximum, ...]:
    """Return the maximum of every binade of finite x, ascending in x."""
    fields = [*(256 + e for e in reversed(range(_BINADES_A_SIGN))), *range(_BINADES_A_SIGN)]
    return tuple(
        BinadeMaximum(
            sign="-" if index >> 8 else "+",
            exponent=(index & 0xFF) - 127,
            max_error_ulp=abs(census.binades[index].error_ulp) if index in census.binades else 0.0,
        )
        for index in fields
    )


def _reversals(case: Case, census: Census) -> Reversals | None:
    if case.subject.operator.derivative:
        return None  # a derivative is not monotone, and was not looked at
    worst = census.worst_reversal
    return Reversals(
        count=census.reversals,
        broken=census.reversals_broken,
        worst=case.point(worst) if worst else None,
    )
