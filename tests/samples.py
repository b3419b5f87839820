"""Measured elements and batches built by hand, and a slow measure that shares no code with ours."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import torch

from gelu_verify import operators
from gelu_verify.elements import Elements
from gelu_verify.formats import Format, tensors
from gelu_verify.measure.error import measure
from gelu_verify.measure.regions import Regions
from gelu_verify.measure.summary import Batch

GOLDEN = Path(__file__).parent / "data" / "golden_values.csv"

#: name: (bits, precision, emin, emax, largest finite value), from IEEE 754-2019 table 3.5, the
#: definition of bfloat16 and OCP's OFP8 table 1.
PUBLISHED = {
    "fp64": (64, 53, -1022, 1023, (2 - Fraction(1, 2**52)) * 2**1023),
    "fp32": (32, 24, -126, 127, (2 - Fraction(1, 2**23)) * 2**127),
    "bf16": (16, 8, -126, 127, (2 - Fraction(1, 2**7)) * 2**127),
    "fp16": (16, 11, -14, 15, Fraction(65504)),
    "fp8_e4m3fn": (8, 4, -6, 8, Fraction(448)),
    "fp8_e5m2": (8, 3, -14, 15, Fraction(57344)),
}


def slow_ulp(exact: Fraction, name: str) -> Fraction:
    """``2^(max(floor(log2|y|), emin) - p + 1)`` by comparing with powers of two."""
    _, precision, emin, _, _ = PUBLISHED[name]
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length() + 1
    while exact and Fraction(2) ** exponent > abs(exact):
        exponent -= 1
    return Fraction(2) ** (max(exponent, emin) - precision + 1) if exact else slow_quantum(name)


def slow_quantum(name: str) -> Fraction:
    """The smallest subnormal."""
    _, precision, emin, _, _ = PUBLISHED[name]
    return Fraction(2) ** (emin - precision + 1)


def golden(column: str) -> list[tuple[float, Fraction]]:
    """Rows of the golden file that float64 can hold: x and the exact value to 40 digits."""
    with GOLDEN.open(newline="") as file:
        rows = [(float.fromhex(row["x_hex"]), row[column]) for row in csv.DictReader(file)]
    return [
        (x, Fraction(text))
        for x, text in rows
        if "e-" not in text or int(text.split("e-")[1]) < 1000
    ]


def values(numbers: Sequence[float], fmt: Format) -> torch.Tensor:
    """Numbers that the format holds, as a tensor of its dtype."""
    bits = [fmt.encode(number) for number in numbers]
    signed = [b - (1 << 64) if fmt.bits == 64 and b >> 63 else b for b in bits]
    return tensors.from_bits(torch.tensor(signed, dtype=torch.int64), fmt)


def measured(
    inputs: tuple[torch.Tensor, ...],
    actual: torch.Tensor,
    fmt: Format,
    operator: str = "gelu",
    formula: str = "erf",
) -> Elements:
    """Results of a kernel, measured."""
    op = operators.get(operator)
    errors = measure(actual, op.exact(inputs, formula, fmt), fmt)
    return Elements(op, formula, fmt, inputs, actual, errors)


def elements(
    x: Sequence[float],
    actual: Sequence[float],
    fmt: Format,
    dy: Sequence[float] | None = None,
    formula: str = "erf",
) -> Elements:
    """Results of a GELU (with dy: of its backward) given as numbers, measured."""
    inputs = (values(x, fmt),) if dy is None else (values(dy, fmt), values(x, fmt))
    operator = "gelu" if dy is None else "gelu_backward"
    return measured(inputs, values(actual, fmt), fmt, operator, formula)


def as_batch(part: Elements) -> Batch:
    """The same, as a summary and a tally take it."""
    regions = Regions.of(part.formula, part.fmt, part.operator.derivative)
    codes = torch.where(torch.isfinite(part.x), regions.codes(part.x), -1)
    patterns = tuple(tensors.to_bits(argument, part.fmt) for argument in part.inputs)
    return Batch(patterns, tensors.to_bits(part.actual, part.fmt), codes, part.errors)
