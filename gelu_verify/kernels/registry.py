"""Registered kernels, and the spec of any kernel that is named on the command line.

Importing this loads no framework, so that ``gelu-verify list`` answers at once.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from gelu_verify import operators
from gelu_verify.errors import UsageError, unknown_name
from gelu_verify.kernels import shared_library
from gelu_verify.kernels.spec import KernelSpec


@cache
def registered() -> dict[str, KernelSpec]:
    """Return the kernels that ship with the project, by name, in the order they declare."""
    try:
        from reference_kernels.registry import KERNELS
    except ModuleNotFoundError:
        return {}
    return {spec.name: spec for spec in KERNELS}


def find(name: str) -> KernelSpec:
    """Return the spec of a registered name, a registered target, or a new one for any target."""
    known = registered()
    if name in known:
        return known[name]
    for spec in known.values():
        if spec.target == name:
            return spec
    if name.startswith("torch.ops."):
        return KernelSpec(name=name, target=name, operator=_guess_operator(name))
    if not re.fullmatch(r".+:[A-Za-z_][\w.]*", name):
        raise _not_a_kernel(name, list(known))
    source, _, function = name.rpartition(":")
    if source.endswith(".py"):
        require_file(Path(source))
    operator = _guess_operator(function)
    if shared_library.is_library(source):
        shared_library.require_library(source)
        formats, devices = shared_library.FORMATS, shared_library.DEVICES
        return KernelSpec(
            name=name, target=name, operator=operator, formats=formats, devices=devices
        )
    return KernelSpec(name=name, target=name, operator=operator)


def require_file(path: Path) -> None:
    """Raise a usage error unless a kernel's file exists."""
    if not path.is_file():
        raise UsageError(f"kernel file: got {path}, expected an existing .py file. Check the path.")


def _not_a_kernel(name: str, known: list[str]) -> UsageError:
    if name.rpartition(":")[0].endswith(".py") or name.removesuffix(":").endswith(".py"):
        return UsageError(
            f"kernel: got {name!r}, expected path/to/file.py:function. Add ':' and the function."
        )
    if any(map(shared_library.is_library, (name.rpartition(":")[0], name.removesuffix(":")))):
        return UsageError(
            f"kernel: got {name!r}, expected path/to/lib.so:symbol. Add ':' and the C function."
        )
    hint = (
        "Or name one as path/to/lib.so:symbol, "
        "module:function, path/to/file.py:function or torch.ops.namespace.name."
    )
    return unknown_name("kernel", name, known, hint)


def _guess_operator(function: str) -> str:
    """Return the operator that a function is called after, the longest name; --operator overrides.

    ``Class.gelu_backward`` and ``my_geglu`` end with it, ``linear_gelu_tanh`` begins with it; gelu
    if there is none.
    """
    name = function.rpartition(".")[2]
    if name.endswith("backward"):
        return "gelu_backward"
    fitting = [n for n in operators.names() if name.endswith(n) or name.startswith(n)]
    return max(fitting, key=len, default="gelu")
