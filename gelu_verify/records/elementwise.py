"""Figures of a kernel measured element by element, in ULP."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from gelu_verify.records.base import FindingStatus, Record

#: ``Accuracy.sweep`` of a campaign over all pairs of two 16-bit arguments.
PAIRS = "pairs"


class Point(Record):
    """One element: what went in, what is right, what came out."""

    inputs: dict[str, str] = Field(description="argument name to shortest decimal")
    bits: dict[str, str] = Field(description="argument name to bit pattern, hexadecimal")
    exact: str = Field(description="exact value, 17 significant digits")
    actual: str = Field(description="the kernel's result, decimal")
    actual_bits: str = Field(description="bit pattern of the kernel's result, hexadecimal")
    error_ulp: float = Field(description="signed error in ULP of the format")

    @property
    def shown(self) -> str:
        """The inputs, decimal and bit pattern: ``x = -8.625 (0xC10A)``."""
        return ", ".join(
            f"{name} = {decimal} ({self.bits[name]})" for name, decimal in self.inputs.items()
        )


class RegionAccuracy(Record):
    """ULP figures of one region of x; only elements with exact and actual finite are in it."""

    region: str
    count: Annotated[int, Field(ge=0)]
    max_error_ulp: float
    mean_error_ulp: float = Field(description="signed")
    rms_error_ulp: float
    clipped: int = Field(description="errors beyond 2^24 ULP, entered in mean and RMS as 2^24")
    worst: Point | None


class ClassCount(Record):
    """One class of failure, counted apart."""

    name: str
    count: Annotated[int, Field(ge=1)]
    first: Point
    worst: Point


class AllowanceUse(Record):
    """Elements of one region that hold only by an allowance of the contract."""

    allowance: str
    region: str
    count: Annotated[int, Field(ge=1)]
    worst: Point


class BinadeMaximum(Record):
    """The largest error of one binade of x; 0 where every error is below 2^-21 ULP."""

    sign: Literal["+", "-"]
    exponent: int = Field(description="x is in [2^exponent, 2^(exponent+1)); -127: subnormal")
    max_error_ulp: float


class BinadeErrors(Record):
    """The signed errors of one binade of x, of those with exact and actual finite."""

    sign: Literal["+", "-"]
    exponent: Annotated[int, Field(ge=-24, le=16)] = Field(
        description="x is in [2^exponent, 2^(exponent+1)); -24 holds all below, 16 all above"
    )
    count: Annotated[int, Field(ge=1)]
    lowest_error_ulp: float
    highest_error_ulp: float
    mean_error_ulp: float = Field(
        description="of an exhaustive sweep of fp32, errors beyond 2^24 ULP entered as 2^24"
    )


class Reversals(Record):
    """Neighbouring inputs whose results are out of order, where the function is monotone."""

    count: int
    broken: int = Field(description="of these, by more than the contract permits")
    worst: Point | None = Field(description="its error is the size of the step back, in ULP")


class Certification(StrEnum):
    """What proves the exact values that a measurement was compared with."""

    CERTIFIED = "certified"
    PARTLY = "partly_certified"
    ANALYSIS = "analysis_only"
    UNCERTIFIED = "uncertified"
    ORACLE = "oracle"


class ReferenceCertificate(Record):
    """Whether the certificate of the fast reference holds for the exact values of a measurement."""

    level: Certification = Field(
        description="certified: every fp32 input was compared with Arb, for this source, torch and "
        "instruction set; partly_certified: zones are missing, or another torch's exp was used; "
        "analysis_only: evaluated on a GPU; uncertified: the source changed, or there is no sound "
        "certificate; oracle: the values came from mpmath"
    )
    reason: str = Field(description="one line that says why")
    bound_ulp: float = Field(0.0, description="the reference's bound in ULP of the format")
    max_error_units: float | None = Field(
        None, description="largest certified error of the function, relative, in units of 2^-53"
    )
    source_hash: str | None = Field(
        None, description="SHA-256 of the reference's source as it ran, comments left out"
    )


class Accuracy(Record):
    """How far the kernel is from the exact values, over one sweep."""

    sweep: str = Field(
        description="quick, standard or exhaustive; pairs: all pairs of two 16-bit arguments"
    )
    exhaustive: bool = Field(description="every bit pattern of x was an input")
    seed: int
    inputs_digest: str = Field(
        description="SHA-256 of the input patterns, 16 hex digits; or: all patterns"
    )
    inputs: int = Field(description="points run, NaN and infinite ones included")
    finite_inputs: int
    count: Annotated[int, Field(gt=0, description="points in the ULP figures")]
    max_error_ulp: float = Field(description="upper bound: the reference's own error is added")
    worst_input: str = Field(description="decimal and bit pattern")
    worst: Point
    mean_error_ulp: float = Field(description="signed")
    rms_error_ulp: float
    quantiles: dict[str, float] = Field(description="upper bounds in ULP: 0.5, 0.9, 0.99, 0.999")
    histogram: dict[int, int] = Field(
        description="bin of log2 error to count; see measure.histogram"
    )
    regions: tuple[RegionAccuracy, ...]
    classes: tuple[ClassCount, ...]
    allowances: tuple[AllowanceUse, ...]
    reference: str = Field(description="where the exact values come from, with their bound")
    certificate: ReferenceCertificate | None = Field(
        None, description="what proves the exact values; None in records older than the field"
    )
    binades: tuple[BinadeMaximum, ...] = Field((), description="from an exhaustive sweep of fp32")
    envelope: tuple[BinadeErrors, ...] = Field(
        (),
        description="of all inputs, ascending in x; not of pairs, nor in older records of fp32",
    )
    reversals: Reversals | None = Field(None, description="from an exhaustive sweep of fp32")
    nan_inputs: int = 0
    infinite_inputs: int = 0


FoundName = Literal["erf", "tanh", "sigmoid", "other", "ambiguous"]


class FormulaFound(Record):
    """Which formula the kernel computes, from its values alone."""

    found: FoundName
    distances: dict[str, float] = Field(
        description="formula to RMS distance, in ULP of the format or units of cancellation"
    )
    candidates: tuple[str, ...] = Field(description="formulas the values do not tell apart")
    fitted: str | None = Field(description="the form with other constants that fits, if any does")


class Saturation(Record):
    """Where the kernel starts to return exactly 0 and exactly x, and what that costs."""

    zero_from: float | None = Field(description="at and below it every tested output is 0")
    zero_needed_from: float = Field(description="where the exact value starts to round to 0")
    zero_cost_absolute: float = Field(description="largest |exact| that became 0")
    zero_cost_ulp: float
    identity_from: float | None = Field(description="from it on every tested output is x (dy)")
    identity_needed_from: float
    identity_cost_ulp: float = Field(description="largest error among those that became x (dy)")
    sentence: str


class SpecialValue(Record):
    """What the kernel gives for one special input, over all lengths, lanes and routes tried."""

    input: str
    expected: str
    actual: tuple[str, ...] = Field(description="distinct results seen")
    status: FindingStatus


class Examples(Record):
    """Inputs that Hypothesis drew, in lists, beside the sweep."""

    count: int = Field(description="lists that were asked for")
    seed: int
    failed: tuple[Point, ...] = Field(description="elements of the smallest list that failed")


class Tightest(Record):
    """The strictest promise that would have held."""

    contract: str | None = Field(description="strictest built-in contract, None if none would")
    max_error_ulp: float = Field(description="ULP limit that would hold without any allowance")
    cancellation: float | None = Field(description="largest error in units of |x|·u beyond 4 ULP")
