"""Recompute random blocks of a certificate."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gelu_verify.errors import OracleError, UsageError
from gelu_verify.reference.certificate import run, sweep, zones
from gelu_verify.reference.certificate.zones import Shard

#: Inputs a block.
BLOCK = 4096


@dataclass(frozen=True)
class Slice:
    """What the recomputation of random blocks gave.

    count: inputs; worst: function to its largest proven error, relative, in units of 2^-53.
    compared: whether the maxima of the zones were compared too (same libraries, same instruction
        set), or only the stated bounds.
    """

    count: int
    worst: Mapping[str, float]
    compared: bool


def read(path: Path) -> dict[str, Any]:
    """Return a certificate's document; raise UsageError if there is none that can be read."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"certificate: got {path}, which cannot be read ({error}), expected a JSON file that "
            "`make` wrote. Make it again."
        ) from error
    if not isinstance(document, dict) or "functions" not in document:
        raise UsageError(f"certificate: got {path}, expected a JSON object with functions.")
    return document


def verify(document: Mapping[str, Any], blocks: int, seed: int) -> Slice:
    """Recompute ``blocks`` blocks, drawn evenly over the enumerated zones of all functions.

    Raises OracleError if an error is above the function's bound; where the environment is that of
    the certificate, also if it is above the maximum of the zone by more than the models' errors.
    """
    rng = random.Random(seed)
    compared = document["environment"] == run.environment()
    worst: dict[str, float] = {}
    count = 0
    for shard in sample(rng, blocks):
        result = sweep.examine(shard)
        count += result.count
        entry = document["functions"][shard.function]
        _judge(shard, result, entry, compared=compared)
        worst[shard.function] = max(worst.get(shard.function, 0.0), result.upper)
    return Slice(count, worst, compared)


def sample(rng: random.Random, blocks: int) -> list[Shard]:
    """Return random parts of the enumerated zones; functions take turns, then zones are drawn."""
    chosen = []
    for index in range(blocks):
        formula, order = run.FUNCTIONS[index % len(run.FUNCTIONS)]
        zone = rng.choice([z for z in zones.zones(formula, order) if z.method != "proof"])
        parts = [s for s in zones.shards(formula, order) if _within(s, zone)]
        shard = rng.choice(parts)
        first = rng.randrange(shard.first, max(shard.first + 1, shard.stop - BLOCK + 1))
        stop = min(shard.stop, first + BLOCK)
        chosen.append(Shard(formula, order, zone.name, zone.method, zone.negative, first, stop))
    return chosen


def _within(shard: Shard, zone: zones.Zone) -> bool:
    return (shard.zone, shard.negative) == (zone.name, zone.negative)


def _judge(shard: Shard, result: sweep.Result, entry: Mapping[str, Any], *, compared: bool) -> None:
    side = "negative" if shard.negative else "positive"
    row = next(z for z in entry["zones"] if (z["zone"], z["side"]) == (shard.zone, side))
    limit, got = entry["bound"], result.upper
    if compared and "max_error_units" in row and result.upper <= limit:
        # What was seen less the model's error is surely there; the maximum is surely not passed.
        limit, got = row["max_error_units"], result.seen - result.slack
    if not got <= limit:
        raise OracleError(
            f"certificate of {shard.function}, zone {shard.zone} ({side}): got an error of {got!r} "
            f"units of 2^-53 at the pattern 0x{result.seen_bits:08x}, expected at most {limit!r}. "
            "The reference or the certificate is wrong: make a new one and look at that input."
        )
