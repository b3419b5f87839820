"""The fingerprint of a fused kernel for people: one sentence, and the counts behind it."""

from __future__ import annotations

from gelu_verify.records import Fingerprint, Quantity

_QUANTITIES: tuple[Quantity, ...] = (
    "bits of x",
    "bits of weight",
    "bits of a sum",
    "terms before a rounding",
)
HEADER = ("K", *_QUANTITIES)


def sentence(found: Fingerprint) -> str:
    """Return what the kernel behaves like, and its products and sums."""
    parts = [found.behaves_like.replace("_", " ")]
    if found.block:
        parts.append(f"rounded every {found.block} terms")
    how = "" if found.rounding == "unknown" else f" ({found.rounding})"
    return f"{', '.join(parts)}: products {found.products}, sums {found.sums}{how}"


def evidence(found: Fingerprint) -> list[tuple[str, ...]]:
    """Return a row for each run of lengths that count alike, under ``HEADER``; - is no count."""
    counts = {(e.k, e.quantity): str(e.observed) for e in found.evidence}
    runs: list[tuple[list[int], tuple[str, ...]]] = []
    for k in sorted({e.k for e in found.evidence}):
        row = tuple(counts.get((k, name), "-") for name in _QUANTITIES)
        if runs and runs[-1][1] == row:
            runs[-1][0].append(k)
        else:
            runs.append(([k], row))
    return [(_lengths(ks), *row) for ks, row in runs]


def _lengths(ks: list[int]) -> str:
    return f"{ks[0]} to {ks[-1]}" if len(ks) > 2 else ", ".join(str(k) for k in ks)


def predictions(found: Fingerprint) -> list[tuple[str, ...]]:
    """Return a row for each arithmetic, under ``HEADER``: the counts that it would give."""
    predicted = {e.quantity: e.predicted for e in found.evidence}
    bits = {name: count for counts in predicted.values() for name, count in counts.items()}
    names = sorted(bits, key=lambda name: -bits[name])
    return [
        (name, *(str(predicted.get(q, {}).get(name, "-")) for q in _QUANTITIES)) for name in names
    ]
