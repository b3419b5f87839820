"""What a page is of: one result, with the file, the environment and the baseline it belongs to."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from gelu_verify.baseline import Folder, Key, Measurement, device_class
from gelu_verify.gate.record import Compared, GateResults
from gelu_verify.records import Environment, KernelResult, Results


@dataclass(frozen=True)
class Entry:
    """One result as the site shows it.

    source: name of the file it was read from; slug: name of its page, without ``.html``.
    compared: a gate's verdict, where the file is a gate's; before: the baseline's figures.
    """

    result: KernelResult
    environment: Environment
    source: str
    slug: str
    compared: Compared | None
    before: Measurement | None

    @property
    def device(self) -> str:
        """The device as a person names it: ``NVIDIA H200``, ``CPU AVX2``."""
        where = self.environment
        if self.result.device.startswith("cuda"):
            return where.device or self.result.device
        return f"CPU {where.instruction_set}" if where.instruction_set else "CPU"

    @property
    def title(self) -> str:
        """Kernel, operator, format and device in a line."""
        r = self.result
        return f"{r.label}, {r.operator}, {r.format}, {self.device}"


def of(results: Results, source: str, baselines: Folder, taken: set[str]) -> list[Entry]:
    """Return the results of one run. taken: names of pages, in small letters, to which it adds."""
    compared = results.compared if isinstance(results, GateResults) else ()
    return [
        _entry(result, results.environment, source, compared, baselines, taken)
        for result in results.kernels
    ]


def _entry(
    result: KernelResult,
    environment: Environment,
    source: str,
    compared: tuple[Compared, ...],
    baselines: Folder,
    taken: set[str],
) -> Entry:
    mine = (Key.of_result(result), result.operator, result.via, result.device)
    verdicts = [c for c in compared if (c.key, c.operator, c.via, c.device) == mine]
    own = device_class(environment, result.device)
    baseline = baselines.found.get((own, mine[0]))
    before = baseline.measurement(result.operator, result.via) if baseline else None
    what = (result.label, result.operator, result.formula, result.format, own)
    slug = page_name(what, result.accuracy.sweep if result.accuracy else "", taken)
    return Entry(result, environment, source, slug, verdicts[0] if verdicts else None, before)


def page_name(parts: tuple[str, ...], sweep: str, taken: set[str]) -> str:
    """Return a file name for a page: legible, of safe characters, not taken yet; and take it.

    A digest is added where characters were lost; the sweep, then a number, where the same was
    measured before.
    """
    joined = ".".join(parts)
    plain = ".".join(re.sub(r"[^A-Za-z0-9_]+", "-", part).strip("-") or "-" for part in parts)
    plain = plain[:120]
    if len(joined) > 120 or re.search(r"[^A-Za-z0-9_.() -]", joined):
        plain += "." + hashlib.sha256(joined.encode()).hexdigest()[:8]
    # Case is ignored: the site may be copied to a file system that does not tell it.
    if plain.lower() in taken and re.fullmatch(r"[a-z]+", sweep):
        plain += f".{sweep}"
    slug, number = plain, 1
    while slug.lower() in taken:
        number += 1
        slug = f"{plain}.{number}"
    taken.add(slug.lower())
    return slug
