"""What a baseline is compared by, beside the figures that people read."""

from __future__ import annotations

from pydantic import Field

from gelu_verify.records.base import Record
from gelu_verify.statistics.outputs import Outputs
from gelu_verify.statistics.sample import Sample


class Comparable(Record):
    """Results of one kernel, kept for a later comparison."""

    outputs: Outputs = Field(description="every result of the sweep, in its order")
    sample: Sample | None = Field(
        None, description="errors at random inputs; None where the sweep is every input"
    )
