"""What must be stored of results so that "n of N changed" is exact without storing them.

The residual of a result is its bit pattern minus that of the correctly rounded value: 0 for most
results of a good kernel, small for the others, so that it packs well. Equal residuals at equal
inputs are equal results.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from gelu_verify.errors import UsageError
from gelu_verify.records.base import Record

if TYPE_CHECKING:
    import numpy as np

#: A SHA-256, the first 16 hex digits of it.
DIGEST = r"^[0-9a-f]{16}$"
#: Two arguments in each of 2^16 patterns of x; more results are told apart by their digest alone.
LARGEST_PACKED = 1 << 18
_BYTES = 8
#: Text of the packed residuals of LARGEST_PACKED results, were they not to pack at all.
_LONGEST = LARGEST_PACKED * _BYTES * 5 // 4 + 4096


class Changed(Record):
    """How the results at the same inputs differ."""

    count: int = Field(description="results compared")
    changed: int | None = Field(
        description="of these, with another bit pattern; None: some, only the digests are known"
    )
    first: int | None = Field(None, description="index of the first changed result")
    farthest: int | None = Field(None, description="index of the result that moved farthest")
    largest_move: int = Field(0, description="how far that moved, in steps of the bit pattern")

    @property
    def any(self) -> bool:
        """Whether a single result differs."""
        return self.changed != 0


class Outputs(Record):
    """The results of a sweep or sample, as far as a later run needs them."""

    count: Annotated[int, Field(ge=0, le=1 << 40)]
    digest: Annotated[str, Field(pattern=DIGEST)] = Field(
        description="SHA-256 of the residuals, 16 hex digits"
    )
    residuals: Annotated[str, Field(max_length=_LONGEST)] | None = Field(
        description="zlib, base 85, of the residuals as little-endian int64; None above 2^18"
    )

    @classmethod
    def of(cls, actual: np.ndarray, due: np.ndarray) -> Outputs:
        """Return the outputs with bit patterns ``actual``, int64 (N,), where ``due`` is right."""
        import numpy as np

        # Patterns of 64 bits wrap around: the difference is one to one all the same.
        residuals = (actual.astype(np.uint64) - due.astype(np.uint64)).astype("<i8")
        raw = residuals.tobytes()
        small = residuals.size <= LARGEST_PACKED
        packed = base64.b85encode(zlib.compress(raw)).decode() if small else None
        return cls(count=residuals.size, digest=digest(raw), residuals=packed)

    def unpacked(self) -> np.ndarray | None:
        """Return the residuals, int64 (N,); None where only the digest was kept.

        Raises UsageError for a text that is not what ``of`` writes; takes 2 MiB at most.
        """
        import numpy as np

        if self.residuals is None:
            return None
        expected = self.count * _BYTES
        decoder = zlib.decompressobj()
        try:
            raw = decoder.decompress(base64.b85decode(self.residuals), expected + 1)
        except (ValueError, binascii.Error, zlib.error):
            raw = b""
        if self.count > LARGEST_PACKED or len(raw) != expected or digest(raw) != self.digest:
            raise UsageError(
                f"stored outputs: got {len(raw)} bytes with digest {digest(raw)}, expected "
                f"{expected} with {self.digest}. Restore the file, or accept a new baseline."
            )
        return np.frombuffer(raw, dtype="<i8")


def changed(before: Outputs, now: Outputs) -> Changed:
    """Say how results at the same inputs, in the same order, differ.

    Raises UsageError for another number of results.
    """
    if before.count != now.count:
        raise UsageError(
            f"outputs: got {now.count} results, expected the {before.count} of the same inputs."
        )
    if before.digest == now.digest:
        return Changed(count=now.count, changed=0)
    old, new = before.unpacked(), now.unpacked()
    if old is None or new is None:
        return Changed(count=now.count, changed=None)
    where = (old != new).nonzero()[0]
    moves = [abs(int(new[i]) - int(old[i])) for i in where]
    largest = max(moves, default=0)
    return Changed(
        count=now.count,
        changed=len(where),
        first=int(where[0]),
        farthest=int(where[moves.index(largest)]),
        largest_move=largest,
    )


def digest(raw: bytes) -> str:
    """Return the digest of what was stored or measured."""
    return hashlib.sha256(raw).hexdigest()[:16]
