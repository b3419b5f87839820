"""Measurements that become baselines, and those that are refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gelu_verify.baseline import record
from gelu_verify.baseline.folder import Folder
from gelu_verify.baseline.key import Key, device_class
from gelu_verify.errors import UsageError
from gelu_verify.records import KernelResult, Results, Status


@dataclass
class Accepted:
    """What was done with each kernel and format."""

    written: list[Path] = field(default_factory=list)
    same: int = 0
    refused: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)

    @property
    def exit_status(self) -> int:
        """0 all accepted, 1 one was refused, 3 nothing could be measured."""
        if self.refused:
            return 1
        return 0 if self.written or self.same else 3

    def lines(self) -> list[str]:
        """Return what was done, a line each."""
        lines = [f"wrote {path}" for path in self.written]
        lines += [f"refused {reason}" for reason in self.refused]
        lines += [f"not measured here: {what}" for what in self.absent]
        return [*lines, f"{len(self.written)} written, {self.same} as before"]


def accept(results: Results, folder: Folder) -> Accepted:
    """Write the baselines of results that keep their contracts."""
    groups: dict[tuple[str, Key], list[KernelResult]] = {}
    for result in results.kernels:
        if not result.replayed:
            place = device_class(results.environment, result.device), Key.of_result(result)
            groups.setdefault(place, []).append(result)
    done = Accepted()
    for (_, key), members in groups.items():
        if any(result.status is Status.UNAVAILABLE for result in members):
            done.absent.append(f"{key} on {members[0].device}")
            continue
        try:
            baseline = record.of(tuple(members), results.environment)
        except UsageError as error:
            done.refused.append(str(error))
            continue
        if folder.put(baseline):
            done.written.append(folder.place(baseline.device_class, key))
        else:
            done.same += 1
    return done
