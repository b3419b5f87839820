"""``gelu_verify.check(...)``: the same check from Python."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

from gelu_verify import session
from gelu_verify.errors import UsageError
from gelu_verify.job import plan
from gelu_verify.kernels.listener import Limits
from gelu_verify.kernels.spec import KernelSpec
from gelu_verify.records import Results


def check(
    kernel: str | Callable[..., Any],
    *,
    operator: str | None = None,
    formula: str | None = None,
    format: str | Sequence[str] = (),
    contract: str | None = None,
    device: str = "cpu",
    sweep: str = "standard",
    seed: int = 0,
    timeout: float = 60.0,
) -> Results:
    """Check one kernel and return its results; ``.raise_if_failed()`` turns them into an error.

    kernel: a name as on the command line (runs in a child process), or the function itself (runs
        in this process, not isolated). It takes and returns torch tensors: ``gelu(x)``,
        ``gelu_backward(dy, x)``, ``bias_gelu(x, bias)`` with x (M, N) and bias (N,), or
        ``geglu(gate, up)``. What it computes is told by ``operator`` or by the end of its name.
    format: one format or several; all that the kernel declares if empty (fp32, bf16, fp16).
    sweep: quick, standard, or exhaustive: all 2^32 inputs of fp32 (and all 2^32 pairs of two 16-bit
        arguments, those of a backward too), which takes long; those of a
        name run on all cores and go on where an interrupted run ended, those of a function in this
        process alone.
    timeout: seconds a single check may take, where the kernel runs in a child process.
    Raises :class:`gelu_verify.errors.UsageError` for an unknown name.
    """
    names = (format,) if isinstance(format, str) else tuple(format)
    options: dict[str, Any] = {
        "operator": operator,
        "formula": formula,
        "format_names": names,
        "contract": contract,
        "device": device,
        "depth": sweep,
        "seed": seed,
    }
    if isinstance(kernel, str):
        return session.run(plan(kernel, **options), Limits.default(timeout), _quiet)
    return session.run_here(plan(spec_of(kernel), **options), _quiet, kernel)


def spec_of(kernel: Callable[..., Any]) -> KernelSpec:
    """Return what is known of a function: its name, and the operator that its name ends with."""
    if not callable(kernel):
        got = type(kernel).__name__
        raise UsageError(f"kernel: got {got}, expected a function of torch tensors or a name.")
    name = str(getattr(kernel, "__qualname__", type(kernel).__name__))
    endings = (("backward", "gelu_backward"), ("bias_gelu", "bias_gelu"), ("geglu", "geglu"))
    operator = next((op for ending, op in endings if name.endswith(ending)), "gelu")
    return KernelSpec(name=name, target=_importable(kernel, name), operator=operator)


def _importable(kernel: Callable[..., Any], name: str) -> str:
    """Return the name under which the command line finds a function, with ``<`` if it cannot."""
    module = getattr(kernel, "__module__", None)
    if not inspect.isfunction(kernel):
        return f"<{type(kernel).__name__}>"
    if module == "__main__":
        main = getattr(sys.modules["__main__"], "__file__", None)
        return f"{main}:{name}" if main else f"<__main__>:{name}"
    return f"{module}:{name}"


def _quiet(_index: int, _check: str) -> None:
    return None
