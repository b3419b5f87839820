"""Inputs that earlier hunts found, merged into every sweep of their operator and format.

They come from ``reports/hard_cases.jsonl`` of the current folder, where there is one, and from the
file that ships with the package. The formula they were found with does not matter: what is hard
for one is worth trying on the others.
"""

from __future__ import annotations

from pathlib import Path

from gelu_verify.formats import Format
from gelu_verify.hunt import hard_cases

PACKAGED = Path(__file__).with_name("hard_cases.jsonl")


def patterns(operator: str, fmt: Format) -> tuple[tuple[int, ...], ...]:
    """Return the input patterns, one for each argument, without repeats and in a fixed order."""
    found = {
        case.patterns
        for path in (PACKAGED, hard_cases.DEFAULT_PATH)
        if path.is_file()
        for case in hard_cases.read(path)
        if case.operator == operator and case.format == fmt.name
    }
    return tuple(sorted(found))
