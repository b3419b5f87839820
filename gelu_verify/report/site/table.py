"""The rows of the index: one a result, each cell with its text and what it sorts by."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gelu_verify.formats import FORMATS
from gelu_verify.records import KernelResult
from gelu_verify.report import rows
from gelu_verify.report.numbers import figure
from gelu_verify.report.site import words
from gelu_verify.report.site.entry import Entry

#: Errors in ULP from which a cell has the next colour: correctly rounded, faithful, the limit of
#: ``tail_accurate``, and two sizes at which half and all of a 16-bit significand are lost.
_LEVELS = (0.5, 1.0, 4.0, 256.0, 65536.0)


@dataclass(frozen=True)
class Cell:
    """One cell. sort: a number or text that it sorts by; kind: its class of colour, or none."""

    text: str
    sort: float | str
    kind: str = ""
    full: str = ""


@dataclass(frozen=True)
class Row:
    """One result of the index."""

    slug: str
    label: str
    operator: str
    format: str
    device: str
    status: str
    verdict: str
    contract: str
    simulated: bool
    formula: Cell
    regions: tuple[Cell, ...]
    largest: Cell
    bias: Cell
    bound: Cell
    guard: Cell
    special: Cell
    change: Cell
    sweep: Cell
    certified: Cell
    speed: Cell


def row(entry: Entry) -> Row:
    """Return the row of a result."""
    r, a = entry.result, entry.result.accuracy
    kind, short, full = words.change(entry)
    special = rows.special(r)
    return Row(
        slug=entry.slug,
        label=r.label,
        operator=r.operator,
        format=r.format,
        device=entry.device,
        status=r.status.value,
        verdict=rows.LABELS[r.status],
        contract=r.contract,
        simulated=r.simulated,
        formula=_formula(r),
        regions=_regions(r),
        largest=_error(a.max_error_ulp if a else None),
        bias=_signed(a.mean_error_ulp if a else None),
        bound=_ratio(r),
        guard=_guard(r),
        special=Cell(special, special, "" if special in ("right", "-") else "odd"),
        change=Cell(short, short, f"change-{kind}", full),
        sweep=_sweep(r),
        certified=_certified(r),
        speed=_speed(r),
    )


def level(error_ulp: float) -> str:
    """Return the class of colour of an error: level-0 for a correctly rounded one, to level-5."""
    if not math.isfinite(error_ulp):
        return "level-5"
    return f"level-{sum(error_ulp > limit for limit in _LEVELS)}"


def legend() -> list[tuple[str, str]]:
    """Return the classes of colour and what they mean."""
    bounds = [f"≤ {limit:g} ULP" for limit in _LEVELS]
    return [(f"level-{i}", text) for i, text in enumerate([*bounds, f"> {_LEVELS[-1]:g} ULP"])]


def _error(size: float | None) -> Cell:
    if size is None:
        return Cell("-", -1.0)
    known = size if math.isfinite(size) else 1e308
    return Cell(_short(size), known, level(size), f"{figure(size)} ULP")


def _short(size: float) -> str:
    """Return an error for a narrow cell: ``1.7e7`` where ``figure`` writes ``1.68e+07``."""
    if not 1e4 <= size < math.inf:
        return figure(size)
    digits, _, power = f"{size:.1e}".partition("e")
    return f"{digits}e{int(power)}"


def _signed(mean: float | None) -> Cell:
    if mean is None or math.isnan(mean):
        return Cell("-", 0.0)
    return Cell(f"{mean:+.2g}", abs(mean))


def _regions(r: KernelResult) -> tuple[Cell, ...]:
    found = {x.region: x.max_error_ulp for x in r.accuracy.regions if x.count} if r.accuracy else {}
    return tuple(_error(found.get(name)) for name in rows.REGION_KEYS)


def _formula(r: KernelResult) -> Cell:
    found = r.formula_found
    if found is None:
        return Cell(f"{r.formula}, declared", r.formula, "quiet")
    name = found.found if found.found != "ambiguous" else " or ".join(found.candidates)
    odd = r.formula not in (found.found, *found.candidates)
    return Cell(name, name, "odd" if odd else "", f"declared {r.formula}")


def _ratio(r: KernelResult) -> Cell:
    ratio = rows.largest_ratio(r)
    if ratio is None:
        return Cell("-", -1.0)
    # Written so that NaN is no bound kept.
    return Cell(figure(ratio), ratio, "level-0" if ratio <= 1.0 else "level-5")


def _guard(r: KernelResult) -> Cell:
    found = r.saturation
    if found is None:
        return Cell("-", 0.0)
    if found.zero_from is None or found.zero_from <= found.zero_needed_from:
        return Cell("none", 0.0, "", found.sentence)
    return Cell(f"0 from {found.zero_from:.4g}", found.zero_from, "", found.sentence)


def _sweep(r: KernelResult) -> Cell:
    a = r.accuracy
    if a is None:
        if r.bound is None:
            return Cell("-", 0)
        return Cell(f"{r.bound.cases} cases, {r.bound.elements:,} elements", r.bound.elements)
    known = FORMATS.get(r.format)
    return Cell(f"{a.sweep}: {words.coverage(a, known.bits if known else None)}", a.inputs)


def _certified(r: KernelResult) -> Cell:
    if r.accuracy is None:
        return Cell("-", "-")
    proof = r.accuracy.certificate
    if proof is None:
        return Cell("not recorded", "not recorded", "quiet")
    name = rows.CERTIFICATION[proof.level]
    return Cell(name, name, "odd" if proof.level == "uncertified" else "", rows.certificate(proof))


def _speed(r: KernelResult) -> Cell:
    if r.speed is None:
        return Cell("-", -1.0)
    return Cell(figure(r.speed.element_ns), r.speed.element_ns, "", rows.speed(r.speed))
