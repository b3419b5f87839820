"""How a measurement differs from the one of a baseline, fact by fact."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from gelu_verify.baseline import Measurement
from gelu_verify.baseline.record import BoundFigures, Figures
from gelu_verify.contracts import BUILT_IN
from gelu_verify.report.numbers import figure

#: A maximum that moves by less is the same: 1 % of it, and a hundredth of an ULP (of a bound).
_RELATIVE = 0.01
_ABSOLUTE = 0.01
_RANKS = {contract.name: rank for rank, contract in enumerate(BUILT_IN)}


class Weight(IntEnum):
    """What a difference means for the ratchet."""

    SAME = 0
    BETTER = 1
    WORSE = 2


@dataclass(frozen=True)
class Fact:
    """One difference in a line, and the input that shows it best."""

    weight: Weight
    text: str
    input: str | None = None


def facts(before: Measurement, now: Measurement) -> list[Fact]:
    """Return all differences of figures.

    Figures of a sweep are compared only where its inputs are the same.
    """
    found = [*_tightest(before, now), *_special(before, now)]
    if before.elementwise and now.elementwise and same_inputs(before, now):
        found += _elementwise(before.elementwise, now.elementwise)
    if before.bound and now.bound:
        found += _bound(before.bound, now.bound)
    return found


def same_inputs(before: Measurement, now: Measurement) -> bool:
    """Tell whether two measurements are of the same inputs, so that differences are facts."""
    one, other = before.elementwise, now.elementwise
    return one is None or other is None or one.inputs_digest == other.inputs_digest


def _tightest(before: Measurement, now: Measurement) -> list[Fact]:
    old, new = (_RANKS.get(m.tightest or "", len(_RANKS)) for m in (before, now))
    if old == new:
        return []
    text = (
        f"strictest contract that holds: {now.tightest or 'none'}, was {before.tightest or 'none'}"
    )
    worst = now.elementwise.worst.shown if now.elementwise else None
    return [Fact(Weight.WORSE if new > old else Weight.BETTER, text, worst)]


def _special(before: Measurement, now: Measurement) -> list[Fact]:
    return [
        Fact(Weight.SAME, f"at {name}: {now.special_values[name]}, was {was}", name)
        for name, was in before.special_values.items()
        if now.special_values.get(name, was) != was
    ]


def _elementwise(before: Figures, now: Figures) -> list[Fact]:
    found = []
    for name in dict.fromkeys((*before.regions, *now.regions)):
        old, new = before.regions.get(name), now.regions.get(name)
        if old is None or new is None:
            gone = Fact(Weight.WORSE, f"{name}: no finite result any more")
            found.append(
                gone if new is None else Fact(Weight.BETTER, f"{name}: finite results now")
            )
            continue
        what = f"{name}: largest error {{}} ULP, was {{}} ULP"
        found += _moved(what, old.max_error_ulp, new.max_error_ulp, new.worst_input)
        spread = f"{name}: RMS error {{}} ULP, was {{}} ULP"
        found += _moved(spread, old.rms_error_ulp, new.rms_error_ulp, new.worst_input)
    for name in sorted(before.classes.keys() | now.classes.keys()):
        old_count, new_count = before.classes.get(name, 0), now.classes.get(name, 0)
        if old_count != new_count:
            weight = Weight.WORSE if new_count > old_count else Weight.BETTER
            text = f"{name.replace('_', ' ')}: {new_count:,} inputs, was {old_count:,}"
            found.append(Fact(weight, text, now.worst.shown))
    return found


def _bound(before: BoundFigures, now: BoundFigures) -> list[Fact]:
    found = _moved("error over bound {}, was {}", before.max_ratio, now.max_ratio, now.worst_case)
    for name, old in before.gradients.items():
        new = now.gradients.get(name)
        if new is None:
            found.append(Fact(Weight.WORSE, f"d{name}: no gradient any more"))
        else:
            found += _moved(f"d{name}: error over bound {{}}, was {{}}", old, new, None)
    return found


def _moved(what: str, old: float, new: float, shown: str | None) -> list[Fact]:
    """Return the fact of a maximum that has moved by more than the least that counts."""
    if new == old:
        return []
    text = what.format(figure(new), figure(old))
    least = max(_ABSOLUTE, _RELATIVE * abs(old))
    if abs(new - old) <= least:
        return [Fact(Weight.SAME, f"{text} (less than {figure(least)} counts)", shown)]
    # Written so that NaN is worse.
    return [Fact(Weight.BETTER if new < old else Weight.WORSE, text, shown)]
