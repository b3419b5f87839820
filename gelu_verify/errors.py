"""The exceptions of gelu_verify: one family, each with the exit status it leads to.

Messages follow one pattern: ``<what>: got <value>, expected <range>. <next step>``.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class GeluVerifyError(Exception):
    """Base of everything gelu_verify raises on purpose; shown as one line, never as a traceback."""

    exit_status = 1


class UsageError(GeluVerifyError):
    """A wrong name, option, signature or configuration value (exit status 2)."""

    exit_status = 2


class UnavailableError(GeluVerifyError):
    """What was asked for cannot run on this machine (exit status 3)."""

    exit_status = 3


class OracleError(GeluVerifyError):
    """Two independent evaluations of the exact value disagree beyond their stated errors."""


class EmptySampleError(GeluVerifyError):
    """A verdict was asked of zero inputs: no sample, no verdict."""


class ContractBroken(GeluVerifyError, AssertionError):
    """Raised by ``Results.raise_if_failed``; an AssertionError, so test runners show it as one."""


#: The most names that an error lists.
_LISTED = 60


def unknown_name(what: str, got: str, known: Iterable[str], next_step: str = "") -> UsageError:
    """Build the error for a name that is not among ``known``, naming the nearest one.

    More names than fit a screen are counted instead.
    """
    names = sorted(known)
    near = get_close_matches(got, names, n=1)
    hint = f"Did you mean {near[0]}?" if near else next_step
    listed = ", ".join(names) if len(names) <= _LISTED else f"{len(names)} names"
    return UsageError(f"{what}: got {got!r}, expected one of {listed}. {hint}".rstrip())
