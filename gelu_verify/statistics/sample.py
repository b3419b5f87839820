"""What is kept of a kernel's results at randomly drawn inputs; ``sampling`` draws and measures."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gelu_verify.records.base import Record
from gelu_verify.statistics.distribution import ErrorDistribution
from gelu_verify.statistics.outputs import DIGEST


class Sample(Record):
    """The errors of a kernel at randomly drawn inputs, by region; all that a baseline keeps."""

    seed: Annotated[int, Field(ge=0)]
    per_region: Annotated[int, Field(ge=1, le=1 << 20)] = Field(description="draws of each region")
    inputs_digest: Annotated[str, Field(pattern=DIGEST)] = Field(
        description="SHA-256 of the input patterns, 16 hex digits: equal inputs, equal digest"
    )
    regions: Annotated[dict[str, ErrorDistribution], Field(max_length=16)] = Field(
        description="region of x to its errors; regions without a float are left out"
    )
    outputs_digest: Annotated[str, Field(pattern=DIGEST)] = Field(
        description="SHA-256 of the result patterns, 16 hex digits: equal only if nothing changed"
    )
