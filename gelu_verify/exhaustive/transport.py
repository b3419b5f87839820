"""A census as JSON and back, exactly: what a shard's worker sends and a ledger keeps."""

from __future__ import annotations

import json
from dataclasses import astuple
from typing import Any

import numpy as np

from gelu_verify.contracts import Contract
from gelu_verify.exhaustive.census import Census
from gelu_verify.judge import Tally, Usage
from gelu_verify.measure import histogram
from gelu_verify.measure.envelope import Spread
from gelu_verify.measure.error import Class
from gelu_verify.measure.regions import Region
from gelu_verify.measure.summary import ClassTally, RegionSummary, Sample, Summary


def dumps(census: Census) -> str:
    """Return a census as JSON, keys sorted: equal censuses give equal text."""
    return json.dumps(_from_census(census), sort_keys=True, separators=(",", ":"))


def loads(text: str) -> Census:
    """Return the census that :func:`dumps` wrote."""
    data = json.loads(text)
    return Census(
        summary=_to_summary(data["summary"]),
        nan_inputs=data["nan_inputs"],
        infinite_inputs=data["infinite_inputs"],
        binades={int(k): _required(v) for k, v in data["binades"].items()},
        spreads={int(k): Spread(*v) for k, v in data["spreads"].items()},
        tallies={name: _to_tally(value) for name, value in data["tallies"].items()},
        broken=set(data.get("broken", ())),
        reversals=data["reversals"],
        worst_reversal=_to_sample(data["worst_reversal"]),
        reversals_broken=data["reversals_broken"],
        zero_reach=data["zero_reach"],
        identity_reach=data["identity_reach"],
    )


def _from_census(census: Census) -> dict[str, Any]:
    return {
        "summary": _from_summary(census.summary),
        "nan_inputs": census.nan_inputs,
        "infinite_inputs": census.infinite_inputs,
        "binades": {str(k): _from_sample(v) for k, v in census.binades.items()},
        "spreads": {str(k): astuple(v) for k, v in census.spreads.items()},
        "tallies": {name: _from_tally(tally) for name, tally in census.tallies.items()},
        "broken": sorted(census.broken),
        "reversals": census.reversals,
        "worst_reversal": _from_sample(census.worst_reversal),
        "reversals_broken": census.reversals_broken,
        "zero_reach": census.zero_reach,
        "identity_reach": census.identity_reach,
    }


def _from_sample(sample: Sample | None) -> list[Any] | None:
    if sample is None:
        return None
    # float.hex() keeps every bit, infinities and NaN included.
    return [list(sample.inputs), sample.actual, float(sample.error_ulp).hex()]


def _to_sample(data: list[Any] | None) -> Sample | None:
    return None if data is None else Sample(tuple(data[0]), data[1], float.fromhex(data[2]))


def _required(data: list[Any]) -> Sample:
    sample = _to_sample(data)
    assert sample is not None
    return sample


def _from_summary(summary: Summary) -> dict[str, Any]:
    return {
        "inputs": summary.inputs,
        "finite_inputs": summary.finite_inputs,
        "regions": {r.value: _from_region(part) for r, part in summary.regions.items()},
        "classes": {
            cls.label: [seen.count, _from_sample(seen.first), _from_sample(seen.worst)]
            for cls, seen in summary.classes.items()
        },
    }


def _to_summary(data: dict[str, Any]) -> Summary:
    return Summary(
        inputs=data["inputs"],
        finite_inputs=data["finite_inputs"],
        regions={Region(name): _to_region(part) for name, part in data["regions"].items()},
        classes={
            Class[label.upper()]: ClassTally(seen[0], _to_sample(seen[1]), _to_sample(seen[2]))
            for label, seen in data["classes"].items()
        },
    )


def _from_region(part: RegionSummary) -> dict[str, Any]:
    return {
        "count": part.count,
        "clipped": part.clipped,
        "signed_sum": part.signed_sum,
        "small_square_sum": part.small_square_sum,
        "large_square_sum": part.large_square_sum,
        "worst": _from_sample(part.worst),
        "histogram": {str(i): int(n) for i, n in enumerate(part.histogram) if n},
    }


def _to_region(data: dict[str, Any]) -> RegionSummary:
    counts = np.zeros(histogram.BIN_COUNT, dtype=np.int64)
    for index, number in data["histogram"].items():
        counts[int(index)] = number
    return RegionSummary(
        count=data["count"],
        clipped=data["clipped"],
        signed_sum=data["signed_sum"],
        small_square_sum=data["small_square_sum"],
        large_square_sum=data["large_square_sum"],
        worst=_to_sample(data["worst"]),
        histogram=counts,
    )


def _from_tally(tally: Tally) -> dict[str, Any]:
    return {
        "contract": tally.contract.model_dump(mode="json"),
        "broken": tally.broken,
        "first": _from_sample(tally.first),
        "worst": _from_sample(tally.worst),
        "usage": [
            [name, region.value, use.count, _from_sample(use.worst)]
            for (name, region), use in sorted(tally.usage.items())
        ],
    }


def _to_tally(data: dict[str, Any]) -> Tally:
    return Tally(
        Contract.model_validate(data["contract"]),
        data["broken"],
        _to_sample(data["first"]),
        _to_sample(data["worst"]),
        {
            (name, Region(region)): Usage(count, _to_sample(worst))
            for name, region, count, worst in data["usage"]
        },
    )
