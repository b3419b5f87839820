"""Figures of a fused kernel: errors over derived bounds, and what its results tell of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gelu_verify.records.base import Record


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
