"""How a kernel under test fails without ending its process."""

from __future__ import annotations

from gelu_verify.errors import GeluVerifyError


class KernelFailure(GeluVerifyError):
    """The kernel raised; the original exception is its cause and its text is in the message."""


class ResultFault(KernelFailure):
    """The kernel returned something that is no result: another type, dtype, shape or device."""


def failure(error: BaseException) -> KernelFailure:
    """Return the failure that an exception of a kernel is."""
    detail = " ".join(str(error).split())[:300]
    return KernelFailure(f"{type(error).__name__}: {detail or 'no message'}")
