"""What a check gives back and what is saved: immutable records, documented field by field.

The JSON schema of ``results.json`` is generated from these classes (``make schema``).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gelu_verify.errors import ContractBroken

SCHEMA_VERSION = 1
#: ``Accuracy.sweep`` of a campaign over all pairs of two 16-bit arguments.
PAIRS = "pairs"


class Status(StrEnum):
    """The verdict on one kernel, operator and format."""

    PASSED = "passed"
    FAILED = "failed"
    KNOWN_ISSUE = "known_issue"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    UNAVAILABLE = "unavailable"

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong that was not declared."""
        return self in (Status.PASSED, Status.KNOWN_ISSUE)


class FindingStatus(StrEnum):
    """What one check says: ``noted`` is a fact worth reading that breaks no promise."""

    PASSED = "passed"
    FAILED = "failed"
    KNOWN_ISSUE = "known_issue"
    NOTED = "noted"
    SKIPPED = "skipped"


class Record(BaseModel):
    """Base of all records: immutable, unknown fields refused, NaN and infinity written as text."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class Point(Record):
    """One element: what went in, what is right, what came out."""

    inputs: dict[str, str] = Field(description="argument name to shortest decimal")
    bits: dict[str, str] = Field(description="argument name to bit pattern, hexadecimal")
    exact: str = Field(description="exact value, 17 significant digits")
    actual: str = Field(description="the kernel's result, decimal")
    actual_bits: str = Field(description="bit pattern of the kernel's result, hexadecimal")
    error_ulp: float = Field(description="signed error in ULP of the format")


class Finding(Record):
    """One thing a check saw, with the input that shows it."""

    check: str
    status: FindingStatus
    message: str
    input: str | None = Field(None, description="input that shows it, decimal and bit pattern")
    reproduce: str | None = Field(None, description="a command line that shows it again")
    link: str | None = Field(None, description="public report, for a known issue")


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


class Tightest(Record):
    """The strictest promise that would have held."""

    contract: str | None = Field(description="strictest built-in contract, None if none would")
    max_error_ulp: float = Field(description="ULP limit that would hold without any allowance")
    cancellation: float | None = Field(description="largest error in units of |x|·u beyond 4 ULP")


class FusedPoint(Record):
    """One element of a fused operator's result."""

    case: str
    index: tuple[int, ...]
    exact: str
    actual: str
    actual_bits: str
    error: float = Field(description="absolute")
    bound: float = Field(description="how far the derived bound lets it be, absolute")
    ratio: float = Field(description="error over bound")
    terms: dict[str, float] = Field(description="the bound by source of error, absolute")


class CaseAccuracy(Record):
    """One case of a fused operator: shapes, values, layout and seed in a line."""

    case: str
    elements: int
    open: int = Field(description="elements of which no distance is promised, judged by kind")
    broken: int
    informative: int = Field(
        description="elements that are evidence: their bound is smaller than their value, and of a "
        "result of GELU excludes another formula"
    )
    max_ratio: float


class BoundAccuracy(Record):
    """Errors of a fused operator over their derived bounds, over all cases."""

    cases: Annotated[int, Field(gt=0)]
    elements: Annotated[int, Field(gt=0)]
    open: int
    broken: int
    informative: int
    max_ratio: float = Field(description="above 1 the bound is broken")
    quantiles: dict[str, float] = Field(description="upper bounds of the ratio: 0.5 to 0.999")
    worst: FusedPoint | None
    dominant: dict[str, float] = Field(
        description="source of error to the share of elements whose bound it dominates"
    )
    arithmetic: str = Field(description="what the bound assumes, in a sentence")
    by_case: tuple[CaseAccuracy, ...]


class GradientAccuracy(Record):
    """The gradient for one argument."""

    argument: str
    bound: BoundAccuracy


class BatchDifference(Record):
    """Rows of a batch against the same rows alone; no measure of accuracy."""

    batch: int = Field(description="rows in the batch")
    elements: int = Field(description="compared: those of its first and last row")
    differing: int = Field(description="of these, with other bits")
    max_ulp: float = Field(description="largest distance, in ULP of the format")


ArithmeticName = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "other", "indistinguishable"]
Quantity = Literal["bits of x", "bits of weight", "bits of a sum", "terms before a rounding"]
BehavesLike = Literal[
    "fp64_accumulation",
    "fp32_accumulation",
    "fp32_products",
    "tf32_products",
    "fp16_products",
    "bf16_products",
    "fp16_partial_sums",
    "bf16_partial_sums",
    "other",
    "indistinguishable",
]


class ArithmeticEvidence(Record):
    """One count of bits (or terms), and what each arithmetic would give."""

    k: int = Field(description="length of the sum")
    quantity: Quantity
    predicted: dict[str, int] = Field(description="arithmetic to count; empty where none differs")
    observed: int


class Fingerprint(Record):
    """In what a fused kernel multiplies and adds, from its results alone."""

    behaves_like: BehavesLike
    products: ArithmeticName = Field(description="what the inputs of products are rounded to")
    sums: ArithmeticName = Field(description="the narrowest arithmetic that a sum passes through")
    rounding: Literal["nearest", "truncated", "unknown"] = Field(description="of sums")
    block: int | None = Field(description="terms added before a 16-bit rounding, where visible")
    evidence: tuple[ArithmeticEvidence, ...]


class KernelResult(Record):
    """Everything learnt about one kernel, operator, formula and format on one device."""

    name: str
    target: str
    operator: str
    via: str | None = Field(None, description="autograd where the backward is the kernel's own")
    formula: str
    format: str
    device: str
    simulated: bool = Field(False, description="ran in Triton's CPU interpreter")
    status: Status
    contract: str
    accuracy: Accuracy | None = None
    bound: BoundAccuracy | None = Field(None, description="of a fused operator")
    gradients: tuple[GradientAccuracy, ...] = Field((), description="of a fused operator")
    batches: tuple[BatchDifference, ...] = Field(
        (), description="batch invariance of a fused operator, a row a batch size"
    )
    fingerprint: Fingerprint | None = Field(None, description="of a fused operator")
    formula_found: FormulaFound | None = None
    saturation: Saturation | None = None
    special_values: tuple[SpecialValue, ...] = ()
    findings: tuple[Finding, ...] = ()
    tightest: Tightest | None = None
    seconds: float = Field(0.0, description="wall time of all checks")
    kernel_seconds: float = Field(0.0, description="wall time inside the kernel")

    @model_validator(mode="after")
    def _passing_needs_evidence(self) -> KernelResult:
        evidence = (self.accuracy, self.bound, self.special_values)
        if self.status.holds and not any(evidence):
            raise ValueError("a result that holds needs figures of at least one input")
        return self

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that break the contract."""
        return tuple(f for f in self.findings if f.status is FindingStatus.FAILED)

    @property
    def label(self) -> str:
        """Name, and how the backward was reached."""
        return f"{self.name} ({self.via})" if self.via else self.name


class Environment(Record):
    """Where and with what the results were made."""

    gelu_verify: str
    commit: str | None
    dirty: bool | None
    date: str = Field(description="UTC, ISO 8601")
    python: str
    platform: str
    processor: str
    instruction_set: str | None = Field(None, description="torch's CPU capability")
    device: str | None = Field(None, description="accelerator, if one was used")
    driver: str | None = None
    libraries: dict[str, str]
    interpreter_canaries: dict[str, bool] | None = Field(
        None, description="what Triton's CPU interpreter gets right, where kernels ran in it"
    )


class Results(Record):
    """The content of ``results.json``."""

    schema_version: int = SCHEMA_VERSION
    environment: Environment
    kernels: tuple[KernelResult, ...]

    @property
    def exit_status(self) -> int:
        """0 all held, 1 something failed, 3 nothing could be checked."""
        checked = [k for k in self.kernels if k.status is not Status.UNAVAILABLE]
        if not checked:
            return 3
        return 0 if all(k.status.holds for k in checked) else 1

    def raise_if_failed(self) -> Results:
        """Return self, or raise :class:`ContractBroken` naming each failure on a line."""
        if self.exit_status == 0:
            return self
        lines = [
            f"{k.label} {k.operator} {k.format}: {k.status.value}: {finding.message}"
            for k in self.kernels
            if not k.status.holds
            for finding in k.failures or k.findings
        ]
        raise ContractBroken("\n".join(lines) or "nothing could be checked: no result at all")
