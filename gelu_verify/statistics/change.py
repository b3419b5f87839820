"""What a comparison of errors says, and when a difference counts: records, no arithmetic."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from gelu_verify.records.base import Record
from gelu_verify.statistics.intervals import Interval

#: Which NaN is not.
Probability = Annotated[float, Field(ge=0, le=1)]


class Quantity(StrEnum):
    """What is compared: mean |error| stands for the distribution in tables."""

    DISTRIBUTION = "distribution"
    BIAS = "bias"
    WRONG = "wrong"


class Change(StrEnum):
    """What a comparison says; ``small``: there is a difference, below what counts."""

    NONE = "none"
    SMALL = "small"
    BETTER = "better"
    WORSE = "worse"


class Setting(Record):
    """When a difference counts. The defaults are those of the measured false alarms and power."""

    alpha: Annotated[float, Field(gt=0, lt=0.5)] = Field(
        0.001, description="risk of one false alarm or more in a whole run"
    )
    limit_ulp: Annotated[float, Field(gt=0)] = Field(
        4.0, description="a result off by this much or more is wrong"
    )
    minimum_shift_ulp: Annotated[float, Field(ge=0)] = Field(
        0.05, description="smallest change of a distribution or mean that counts, ULP"
    )
    minimum_relative: Annotated[float, Field(ge=0)] = Field(
        0.05, description="the same as a part of the earlier mean |error|; the larger one holds"
    )
    minimum_fraction: Annotated[float, Field(ge=0, le=1)] = Field(
        0.001, description="smallest change of the fraction of wrong results that counts"
    )


DEFAULT = Setting()


class Comparison(Record):
    """One quantity of one region, before and now."""

    region: str
    quantity: Quantity
    before: float = Field(
        description="mean |error|, mean error (ULP), or fraction of wrong results"
    )
    now: float = Field(description="the same")
    effect: float = Field(
        description="Wasserstein distance (ULP), or now - before of the other quantities"
    )
    interval: Interval | None = Field(
        None, description="of the difference now - before, where the inputs are a sample"
    )
    minimum_effect: float
    improved: bool = Field(description="which way the change goes, if there is one")
    p_value: Probability | None = Field(description="None for the same inputs: a fact, no test")
    adjusted_p: Probability | None = Field(None, description="after Holm's correction of the run")
    change: Change = Change.NONE

    def sentence(self) -> str:
        """Say in one line what changed and how surely."""
        names = {
            Quantity.DISTRIBUTION: ("mean |error|", " ULP"),
            Quantity.BIAS: ("mean error", " ULP"),
            Quantity.WRONG: ("fraction of wrong results", ""),
        }
        what, unit = names[self.quantity]
        moved = f", errors moved by {self.effect:.3g} ULP"
        size = moved if self.quantity is Quantity.DISTRIBUTION else ""
        surely = "at the same inputs"
        if self.p_value is not None:
            p = self.p_value if self.adjusted_p is None else self.adjusted_p
            surely = f"{'p' if self.adjusted_p is None else 'adjusted p'} = {p:.2g}"
        return (
            f"{self.region}: {what} {self.before:.4g} → {self.now:.4g}{unit}{size}; "
            f"{surely}: {self.change.value}"
        )

    def decided(self, adjusted_p: float | None = None) -> Comparison:
        """Return the comparison of a difference that is known to be there, with what it is."""
        change = Change.BETTER if self.improved else Change.WORSE
        if abs(self.effect) < self.minimum_effect:
            change = Change.SMALL
        return self.model_copy(update={"adjusted_p": adjusted_p, "change": change})
