"""How long a kernel takes: beside its accuracy, never instead of it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gelu_verify.records.base import Record


class Speed(Record):
    """Times of calls with large contiguous arguments of unit normals; where and when, the
    environment of the file says.
    """

    case: str = Field(description="the shape, as a case of a fused operator or n=elements")
    elements: Annotated[int, Field(gt=0)] = Field(description="of the result")
    moved_bytes: Annotated[int, Field(gt=0)] = Field(
        description="arguments and result, each once: the least that a call reads and writes"
    )
    calls: Annotated[int, Field(gt=0)] = Field(description="that were timed, after a warm-up")
    call_us: Annotated[float, Field(gt=0)] = Field(description="median of a call, µs")
    low_us: float = Field(description="a tenth of the calls took at most so long, µs")
    high_us: float = Field(description="nine tenths did, µs")
    threads: int | None = Field(description="of a CPU; None on a GPU")
    method: str

    @property
    def element_ns(self) -> float:
        """Nanoseconds an element of the result."""
        return 1e3 * self.call_us / self.elements

    @property
    def moved_gb_per_s(self) -> float:
        """Gigabytes a second (10^9 bytes) that the arguments and the result alone make."""
        return 1e-3 * self.moved_bytes / self.call_us
