"""The folder of baselines: a folder a class of device, in it a file a kernel and format."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gelu_verify.baseline import file
from gelu_verify.baseline.key import Key
from gelu_verify.baseline.record import Baseline
from gelu_verify.errors import UsageError


@dataclass(frozen=True)
class Folder:
    """All baselines of a folder, as they are when it is read."""

    path: Path
    found: dict[tuple[str, Key], Baseline] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, lenient: bool = False) -> Folder:
        """Read every file; one that cannot be read, or is at another's place, is a usage error.

        A folder that is not there holds nothing.
        lenient: leave such a file out, to be replaced.
        """
        folder = cls(path)
        try:
            if not path.exists():
                return folder
            if not path.is_dir():
                raise UsageError(f"baselines: got {path}, expected a folder.")
            paths = sorted(path.glob("*/*.json"))
        except OSError as error:
            raise UsageError(f"baselines: got {path}, {error.strerror}. Check it.") from None
        for one in paths:
            try:
                baseline = file.read(one)
            except UsageError:
                if lenient:
                    continue
                raise
            place = folder.place(baseline.device_class, baseline.key)
            if place != one:
                raise UsageError(f"baseline: got {one}, which is of {place}. Move it back.")
            folder.found[baseline.device_class, baseline.key] = baseline
        return folder

    def place(self, device_class: str, key: Key) -> Path:
        """Return the path of a baseline's file."""
        return self.path / device_class / key.file_name

    def get(self, device_class: str, key: Key) -> Baseline | None:
        """Return the baseline of a key: of this class of device, else the first of another."""
        own = self.found.get((device_class, key))
        if own is not None:
            return own
        others = [b for (_, k), b in sorted(self.found.items(), key=lambda item: item[0][0])
                  if k == key]  # fmt: skip
        return others[0] if others else None

    def keys(self) -> list[Key]:
        """Return what there are baselines of, once each, in order."""
        return list(dict.fromkeys(key for _, key in self.found))

    def put(self, baseline: Baseline) -> bool:
        """Write a baseline; return False where the file already says the same figures."""
        old = self.found.get((baseline.device_class, baseline.key))
        if old is not None and _same(old, baseline):
            return False
        file.write(self.place(baseline.device_class, baseline.key), baseline)
        self.found[baseline.device_class, baseline.key] = baseline
        return True

    def remove(self, key: Key) -> list[Path]:
        """Delete the files of a key on every class of device; return their paths."""
        paths = [self.place(name, k) for name, k in self.found if k == key]
        for path in paths:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise UsageError(f"baseline: got {path}, {error.strerror}.") from None
        return paths


def _same(old: Baseline, new: Baseline) -> bool:
    """Tell whether only the date or the commit differ: not worth a diff."""
    libraries = old.provenance.libraries == new.provenance.libraries
    return libraries and old.measurements == new.measurements
