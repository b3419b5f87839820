"""Build the certificate, a JSON document, from the results of a run.

``functions`` maps ``erf:0`` (formula and order of derivative) to its zones, its largest error and
whether the stated bound holds. Errors are relative, in units of 2^-53. ``max_error_units`` is a
proven upper bound, the error of the Taylor model included; ``seen_error_units`` the largest error
without it, which direct Arb and the mpmath oracle confirm at its input (``arb_error_units``,
``mpmath_error_units``).
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mpmath
import torch

from gelu_verify.errors import OracleError
from gelu_verify.reference import fast, oracle
from gelu_verify.reference.certificate import closed_form, run, source, sweep, zones
from gelu_verify.reference.certificate.status import SCHEMA_VERSION
from gelu_verify.reference.certificate.sweep import Result
from gelu_verify.reference.certificate.zones import FP32, Shard, Zone

_NOTE = (
    "Relative errors of the float64 results that this CPU's exp and expm1 gave, with the libraries "
    "and the instruction set named under environment. On another device or build they may differ "
    "within the 1 ULP that the bound assumes of exp and expm1: the bound stands there by the "
    "analysis in tails.py, not by this enumeration. Zones by proof: see zones.py."
)
#: Rounding of the float64 error against the exact one, relative.
_AGREEMENT = 1e-9


def certificate(results: Mapping[Shard, Result], date: str) -> dict[str, Any]:
    """Return the certificate of every function, from what is finished."""
    functions = {
        f"{formula}:{order}": _function(formula, order, results) for formula, order in run.FUNCTIONS
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "date": date,
        "unit": "2^-53, relative to the exact value",
        "note": _NOTE,
        "source_files": list(source.FILES),
        "source_hash": source.source_hash(),
        "coefficients_hash": run.table_hash(),
        "method_hash": run.method_hash(),
        "environment": run.environment(),
        "functions": functions,
    }


def write(document: Mapping[str, Any], path: Path) -> None:
    """Write a certificate whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(path)


def _function(formula: str, order: int, results: Mapping[Shard, Result]) -> dict[str, Any]:
    checked = closed_form.check(formula, order)
    rows, total = [], Result()
    for zone in zones.zones(formula, order):
        if zone.method == "proof":
            row = {**_head(zone), "certified": True, "checked": checked[zone.name, zone.side]}
        else:
            result = _merged(formula, order, zone, results)
            row = {**_head(zone), **_enumerated(formula, order, zone, result)}
            total = total.merge(result)
        rows.append(row)
    bound = fast.RELATIVE_ERROR_BOUND[formula, order]
    complete = all(row["certified"] for row in rows)
    return {
        "bound": bound,
        "complete": complete,
        "holds": complete and total.upper <= bound,
        "count": sum(row["count"] for row in rows),
        "count_enumerated": total.count,
        **_errors(formula, order, total),
        "zones": rows,
    }


def _merged(formula: str, order: int, zone: Zone, results: Mapping[Shard, Result]) -> Result:
    total = Result()
    for shard in zones.shards(formula, order):
        if (shard.zone, shard.negative) == (zone.name, zone.negative) and shard in results:
            total = total.merge(results[shard])
    return total


def _head(zone: Zone) -> dict[str, Any]:
    first, last = (zones.point(bits, zone.negative) for bits in (zone.first, zone.stop - 1))
    return {
        "zone": zone.name,
        "side": zone.side,
        "method": zone.method,
        "first": str(first),
        "last": str(last),
        "count": zone.count,
    }


def _enumerated(formula: str, order: int, zone: Zone, result: Result) -> dict[str, Any]:
    row: dict[str, Any] = {"certified": result.count == zone.count}
    if not row["certified"]:
        return {**row, "count_done": result.count}
    if zone.method == "size":
        return {**row, "holds": result.upper < 0}
    errors = _errors(formula, order, result)
    return {**row, **errors, "models": result.models, "direct": result.direct}


def _errors(formula: str, order: int, result: Result) -> dict[str, Any]:
    """Return the two maxima with their inputs, and the confirmation of the one that was seen."""
    if result.upper < 0:
        return {}
    x = FP32.decode(result.seen_bits)
    confirmed = {} if math.isinf(result.seen) else _confirmed(formula, order, x, result)
    return {
        "max_error_units": min(result.upper, sys.float_info.max),  # JSON has no infinity
        "max_error_input": _input(result.upper_bits),
        "seen_error_units": min(result.seen, sys.float_info.max),
        "seen_error_input": _input(result.seen_bits),
        "model_error_units": result.slack,
        **confirmed,
    }


def _confirmed(formula: str, order: int, x: float, result: Result) -> dict[str, float]:
    point = torch.tensor([x], dtype=torch.float64)
    fast_value = float(sweep.reference(formula, order)(point).item())
    by_arb = sweep.direct_error(x, fast_value, formula, order)
    exact = oracle.value(formula, x, derivative=order, bits=200)
    with mpmath.workprec(256):
        by_mpmath = float(abs((fast_value - exact) / exact) * 2**53)
    allowed = _AGREEMENT * max(1.0, by_arb)
    if not (
        abs(by_arb - by_mpmath) <= allowed and abs(result.seen - by_arb) <= result.slack + allowed
    ):
        raise OracleError(
            f"certificate of {formula}:{order} at x = {x!r}: got errors of {result.seen!r} (Taylor "
            f"model), {by_arb!r} (Arb), {by_mpmath!r} (mpmath) units of 2^-53, expected agreement. "
            "Do not use the certificate until this is explained."
        )
    return {"arb_error_units": by_arb, "mpmath_error_units": by_mpmath}


def _input(bits: int) -> dict[str, str]:
    x = FP32.decode(bits)
    return {"decimal": repr(x), "hex": x.hex(), "bits": f"0x{bits:08x}"}
