"""Which accuracy faults do not matter for training, from what the trained models were given."""

from __future__ import annotations

from collections.abc import Sequence

from gelu_verify.convergence.records import Arm, Exposure, Run, Verdict
from gelu_verify.measure.regions import REGIONS

#: A kernel's error below this part of a region's share of the values is rounding.
_LARGE = 0.01
_WHERE = {
    "zero": "where the result rounds to 0",
    "deep_tail": "the deep tail, x < −5.54",
    "tail": "the tail, −5.54 to −3",
    "shoulder": "the shoulder, −3 to −1",
    "saturated": "where the result rounds to x",
    "tiny": "|x| < 2^-12",
}


def sentences(runs: Sequence[Run], verdict: Verdict) -> tuple[str, ...]:
    """Return what an error in the left tail could do here, and which large ones training hid."""
    exposed = [run.exposure for run in runs if run.arm is Arm.REFERENCE and run.exposure]
    if not exposed:
        return ()
    rows = {region.value: _mean(exposed, region.value) for region in REGIONS}
    found = [_tail(rows)]
    if verdict is Verdict.EQUIVALENT:
        found += [
            f"This kernel loses {row.value_error / row.value_share:.0%} of {_WHERE[name]}: that is "
            f"{row.value_error:.1g} of the activations' sum, and training does not show it."
            for name, row in rows.items()
            if name in _WHERE and row.value_share and row.value_error > _LARGE * row.value_share
        ]
    return tuple(found)


def _tail(rows: dict[str, Exposure]) -> str:
    """Say what errors in the left tail can do to what these models compute, if they reach it."""
    deep = [rows[name] for name in ("zero", "deep_tail")]
    share, value = sum(r.share for r in deep), sum(r.value_share for r in deep)
    tail = rows["tail"]
    if not share and not tail.share:
        return (
            "The trained models' activations get no input below −3: errors there, whatever their "
            "ULP, do not matter to this task, and this task does not show what they do to others."
        )
    return (
        f"Of the inputs of the trained models' activations {share:.2g} are below −5.54 and carry "
        f"{value:.1g} of the sum of |f|; {tail.share:.2g} are from −5.54 to −3 and carry "
        f"{tail.value_share:.1g}. An error of 100 % there changes the values by no more than that, "
        "however many ULP it is."
    )


def _mean(exposed: Sequence[tuple[Exposure, ...]], region: str) -> Exposure:
    """Return the mean over seeds; a region that a model did not reach counts as 0."""
    found = [row for rows in exposed for row in rows if row.region == region]

    def mean(name: str) -> float:
        return sum(getattr(row, name) for row in found) / len(exposed)

    names = ("share", "value_share", "value_error", "gradient_error")
    return Exposure(region=region, **{name: mean(name) for name in names})
