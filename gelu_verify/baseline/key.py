"""What a baseline is of: a kernel with its claims, a format, and the class of device it ran on."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated

from pydantic import Field

from gelu_verify.job import Job
from gelu_verify.records import Environment, KernelResult, Record

_Word = Annotated[str, Field(min_length=1, max_length=1000)]


class Key(Record):
    """Kernel, operator, formula, format: what two runs must share to be compared.

    The operator is that of the kernel: its backward through autograd is in the same file.
    """

    kernel: _Word
    operator: _Word
    formula: _Word
    format: _Word

    @classmethod
    def of(cls, job: Job) -> Key:
        """Return the key of a job."""
        operator = "gelu" if job.via else job.operator
        return cls(kernel=job.spec.name, operator=operator, formula=job.formula, format=job.format)

    @classmethod
    def of_result(cls, result: KernelResult) -> Key:
        """Return the key of a result."""
        operator = "gelu" if result.via else result.operator
        return cls(
            kernel=result.name, operator=operator, formula=result.formula, format=result.format
        )

    def __str__(self) -> str:
        return f"{self.kernel} {self.operator} {self.formula} {self.format}"

    @property
    def file_name(self) -> str:
        """The name of its file: legible, and another one for every key."""
        parts = (self.kernel, self.operator, self.formula, self.format)
        name = ".".join(_plain(part) for part in parts)
        if name != ".".join(parts):
            digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]
            name = f"{name[:150]}.{digest}"
        return f"{name}.json"


def device_class(environment: Environment, device: str) -> str:
    """Return the class of a device: those of one class are expected to give the same bits.

    A CPU's is its instruction set as torch uses it, a GPU's its name.
    """
    if device.startswith("cuda"):
        return f"cuda-{_plain(environment.device or 'unknown').lower()}"
    return f"cpu-{_plain(environment.instruction_set or 'unknown').lower()}"


def _plain(text: str) -> str:
    """Return text with nothing that a file name may not have anywhere, nor a dot."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-") or "-"
