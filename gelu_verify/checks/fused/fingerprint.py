"""Fingerprint: in what a kernel multiplies and adds, told from its errors.

:mod:`gelu_verify.checks.fused.arithmetic_probes` counts bits at each length of the sum; here the
counts get their names, and are judged by what the kernel declares. A length of one takes other
routes than a long one in many libraries, so each is read apart, and the narrowest arithmetic that
shows is the kernel's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, cast

from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused import arithmetic_probes
from gelu_verify.checks.fused.arithmetic_probes import Reading
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.formats import Format
from gelu_verify.kernels.subject import KernelFailure, is_refusal
from gelu_verify.operators.fused import Multiplies
from gelu_verify.records import (
    ArithmeticEvidence,
    ArithmeticName,
    BehavesLike,
    FindingStatus,
    Fingerprint,
    Quantity,
)

_NAME = "fingerprint"
#: Around the tiles of K that kernels use, and a length that is no multiple of any.
_LADDER = (1, 31, 32, 33, 64, 512, 513, 1024, 4096)
_QUICK_LADDER = (1, 33, 513)
#: In an interpreter a sum of 4096 takes minutes.
_SIMULATED_LADDER = (1, 31, 32, 33, 64, 512, 513)
#: Fewest and most bits counted where a format of so many is meant: truncation and the place of the
#: terms cost or give some. Hopper's tensor cores keep 14 for FP8, which is none of these.
MEANT: dict[str, tuple[int, int]] = {
    "bf16": (7, 9),
    "fp16": (10, 12),
    "fp32": (20, 28),
    "fp64": (29, 60),
}
_ROUNDINGS: dict[bool | None, Literal["nearest", "truncated", "unknown"]] = {
    True: "truncated",
    False: "nearest",
    None: "unknown",
}
_HOW = {"truncated": "truncated", "nearest": "rounded to nearest"}
#: Significand bits of each arithmetic.
_BITS = {"fp64": 53, "fp32": 24, "tf32": 11, "fp16": 11, "bf16": 8}


def run(case: FusedCase) -> Outcome:
    """Read every length of the ladder, name what shows, and judge it by what is declared."""
    operator = case.operator
    if not isinstance(operator, Multiplies):
        message = f"{operator.name} has no arguments that make it one product of matrices"
        return Outcome([case.finding(_NAME, FindingStatus.SKIPPED, message)])
    multiply = arithmetic_probes.through(case, operator)
    outcome = Outcome()
    readings = []
    for k in _ladder(case):
        try:
            readings.append(arithmetic_probes.read(multiply, case.subject.fmt, k))
        except KernelFailure as error:
            if not is_refusal(error):
                raise
            message = f"refused: K = {k}: {error}"
            outcome.findings.append(case.finding(_NAME, FindingStatus.NOTED, message))
    if not readings:
        message = "the kernel refuses every length of the sum"
        outcome.findings.append(case.finding(_NAME, FindingStatus.SKIPPED, message))
        return outcome
    record = fingerprint(readings, case.subject.fmt)
    outcome.fields["fingerprint"] = record
    outcome.findings.append(case.finding(_NAME, *_verdict(case, record, readings)))
    return outcome


def _ladder(case: FusedCase) -> tuple[int, ...]:
    if case.job.depth == "quick":
        return _QUICK_LADDER
    return _SIMULATED_LADDER if case.subject.simulated else _LADDER


def fingerprint(readings: list[Reading], fmt: Format) -> Fingerprint:
    """Return the record of what the readings of a format show."""
    narrowest = _narrowest(readings)
    sums: ArithmeticName = "indistinguishable"
    if narrowest and narrowest.sums and all(r.sums for r in readings if r.k > 2):
        sums = _named(narrowest.sums.least)
    products = _products(readings, fmt)
    truncates = narrowest.sums.truncates if narrowest and narrowest.sums else None
    return Fingerprint(
        behaves_like=_behaviour(sums, products, fmt),
        products=products,
        sums=sums,
        rounding=_ROUNDINGS[truncates],
        block=narrowest.block if narrowest else None,
        evidence=tuple(_evidence(readings, fmt)),
    )


def _narrowest(readings: list[Reading]) -> Reading | None:
    """Return the reading whose sums keep the fewest bits, the longest of those alike."""
    found = [(r.sums.least, -r.k, r) for r in readings if r.sums]
    return min(found, key=lambda item: item[:2])[2] if found else None


def _named(bits: int) -> ArithmeticName:
    for name, (fewest, most) in MEANT.items():
        if fewest <= bits <= most:
            return cast(ArithmeticName, name)
    return "other"


def _products(readings: list[Reading], fmt: Format) -> ArithmeticName:
    """Return what products round their inputs to, where the sums do not hide it."""
    narrow = any(r.sums and r.sums.least < MEANT["fp32"][0] for r in readings)
    # Where partial sums are narrow, a single term is rounded as they are: it says nothing.
    used = [r for r in readings if r.sums or not narrow]
    bits = min(r.product_bits for r in used)
    if not all(r.wide_range for r in used):
        return "fp16" if bits <= MEANT["fp16"][1] else "other"
    if bits == fmt.precision:
        return cast(ArithmeticName, fmt.name)
    if bits >= min((r.sums.most for r in used if r.sums), default=0) - 1:
        return "indistinguishable"
    found = _named(bits)
    return "tf32" if found == "fp16" else found


def _behaviour(sums: ArithmeticName, products: ArithmeticName, fmt: Format) -> BehavesLike:
    """Return the one name: of narrow sums first, then of narrow products, then of the sums."""
    if sums in ("fp16", "bf16"):
        return cast(BehavesLike, f"{sums}_partial_sums")
    if sums in ("other", "indistinguishable") or products == "other":
        return "indistinguishable" if sums == "indistinguishable" else "other"
    if products in ("indistinguishable", fmt.name):
        return cast(BehavesLike, f"{sums}_accumulation")
    return cast(BehavesLike, f"{products}_products")


def _evidence(readings: list[Reading], fmt: Format) -> Iterator[ArithmeticEvidence]:
    inputs = {name: bits for name, bits in _BITS.items() if bits <= fmt.precision}
    sums = {name: bits for name, bits in _BITS.items() if name != "tf32"}
    for r in readings:
        counts: list[tuple[Quantity, dict[str, int], int | None]] = [
            ("bits of x", inputs, r.x_bits),
            ("bits of weight", inputs, r.weight_bits),
            ("bits of a sum", sums, r.sums.least if r.sums else None),
            ("terms before a rounding", {}, r.block),
        ]
        for quantity, predicted, observed in counts:
            if observed is not None:
                yield ArithmeticEvidence(
                    k=r.k, quantity=quantity, predicted=predicted, observed=observed
                )


def _verdict(
    case: FusedCase, record: Fingerprint, readings: list[Reading]
) -> tuple[FindingStatus, str]:
    """Judge what shows by what the kernel declares, or by the default where it declares nothing."""
    if record.sums == "indistinguishable":
        lengths = ", ".join(str(r.k) for r in readings if r.k > 2 and not r.sums)
        return FindingStatus.NOTED, f"indistinguishable: no bits of a sum to count at K = {lengths}"
    fmt, declared = case.subject.fmt, case.job.spec.arithmetic
    sums = declared.accumulate or ("fp64" if fmt.bits == 64 else "fp32")
    faults = [*_sum_faults(readings, sums), *_product_faults(record, readings, case)]
    said = f"behaves like {record.behaves_like.replace('_', ' ')}"
    if record.block:
        said += f", rounded every {record.block} terms"
    if faults:
        return FindingStatus.FAILED, f"{said}: {'; '.join(faults)}"
    low = _narrowest(readings)
    bits = min(r.product_bits for r in readings)
    if low and low.sums:
        how = "" if record.rounding == "unknown" else f", {_HOW[record.rounding]}"
        said += f": a sum keeps {low.sums.least} bits{how}"
    if record.products == "indistinguishable":
        said += ", which hides what products keep"
    else:
        said += f", a product {bits} bits of each input"
    return FindingStatus.PASSED, f"{said} (K = {readings[0].k} to {readings[-1].k})"


def _sum_faults(readings: list[Reading], wanted: str) -> Iterator[str]:
    low = _narrowest(readings)
    if low and low.sums and low.sums.least < MEANT[wanted][0]:
        yield f"a sum of {low.k} keeps {low.sums.least} bits, {wanted} is due"


def _product_faults(record: Fingerprint, readings: list[Reading], case: FusedCase) -> Iterator[str]:
    fmt = case.subject.fmt
    wanted = case.job.spec.arithmetic.products or fmt.name
    if record.products in ("indistinguishable", fmt.name, wanted):
        return
    low = min(readings, key=lambda r: r.product_bits)
    if record.products == "fp16" and wanted != "fp16":
        yield f"an input of 2^20 does not survive, {wanted} is due"
    elif low.product_bits < MEANT["fp16" if wanted == "tf32" else wanted][0]:
        kept = f"{low.product_bits} bits of an input"
        yield f"a product keeps {kept} at K = {low.k}, {wanted} is due unless declared"
