"""Turn the name of a kernel into the function, with one clear line where that fails."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import shlex
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from gelu_verify.errors import GeluVerifyError, UnavailableError, UsageError
from gelu_verify.kernels import activity, shared_library
from gelu_verify.kernels.registry import require_file
from gelu_verify.kernels.spec import KernelSpec

Function = Callable[..., Any]


def load(spec: KernelSpec, arguments: tuple[str, ...]) -> Function:
    """Return the callable a spec names; it must accept the operator's arguments by position."""
    source, _, attribute = spec.target.rpartition(":")
    if spec.target.startswith("torch.ops."):
        if spec.imports:
            with activity.of_kernel():
                _module(spec, spec.imports)
        function = _torch_operator(spec.target)
    elif shared_library.is_library(source):
        function = shared_library.load(spec.target, arguments)
    else:
        with activity.of_kernel():
            found = _module(spec, source)
        function = _attribute(found, source, attribute)
    require_signature(function, spec.target, arguments)
    return function


def module(source: str) -> ModuleType:
    """Return the module of a name, or of a path to a ``.py`` file."""
    return _module(KernelSpec(name=source, target=source), source)


def _torch_operator(target: str) -> Function:
    import torch

    *path, name = target.removeprefix("torch.ops.").split(".")
    found: Any = torch.ops
    try:
        for part in (*path, name):
            found = getattr(found, part)
    except (AttributeError, RuntimeError):
        found = None
    if not callable(found):
        raise UsageError(
            f"kernel: got {target}, expected a registered torch operator. "
            "Import the module that registers it, or name it as module:function."
        )
    return found


def _module(spec: KernelSpec, source: str) -> ModuleType:
    try:
        if not source.endswith(".py"):
            return _from_name(source)
        require_file(Path(source))
        path = Path(source).resolve()
        return _from_file(path, path.stat().st_mtime_ns)
    except GeluVerifyError:
        raise
    except ImportError as error:
        if spec.registered:
            raise UnavailableError(
                f"kernel {spec.name}: {error}. Install what it imports."
            ) from None
        raise UsageError(_import_message(source, error)) from None
    except (Exception, SystemExit) as error:
        raise UsageError(_import_message(source, error)) from None


def _import_message(source: str, error: BaseException) -> str:
    detail = " ".join(str(error).split()) or "no message"
    is_file = source.endswith(".py")
    trial = ["python", source] if is_file else ["python", "-c", f"import {source}"]
    return (
        f"kernel {'file' if is_file else 'module'} {source}: "
        f"got {type(error).__name__} on import ({detail}), "
        f"expected it to import. Try: {shlex.join(trial)}"
    )


@cache
def _from_file(path: Path, _changed_ns: int) -> ModuleType:
    """Run a file once (and again when it has changed).

    Its folder stays importable, as for a script, also inside its functions.
    """
    name = f"_gelu_verify_kernel_{path.stem}"
    module_spec = importlib.util.spec_from_file_location(name, path.resolve())
    if module_spec is None or module_spec.loader is None:
        raise UsageError(f"kernel file: got {path}, expected Python source. Check the path.")
    module = importlib.util.module_from_spec(module_spec)
    # Registered before it runs: dataclasses and Triton's decorator look their module up by name.
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    module_spec.loader.exec_module(module)
    return module


def _from_name(name: str) -> ModuleType:
    # As ``python -m`` does: the user's own modules are found from the current folder.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return importlib.import_module(name)


def _attribute(module: ModuleType, source: str, attribute: str) -> Function:
    """Return a function of a module, by dotted name."""
    found: Any = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if callable(found):
        return found
    public = [n for n, v in vars(module).items() if inspect.isfunction(v) and n[0] != "_"]
    got = "nothing of that name" if found is None else type(found).__name__
    raise UsageError(
        f"kernel {source}:{attribute}: got {got}, expected a function. "
        f"The module has: {', '.join(sorted(public)) or 'no public function'}."
    )


def require_signature(function: Function, target: str, arguments: tuple[str, ...]) -> None:
    """Raise a usage error unless a function can be called with the operator's arguments."""
    if not callable(function):
        got = type(function).__name__
        raise UsageError(f"kernel {target}: got {got}, expected a function of torch tensors.")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # built-in functions may have none; the first call will tell
    try:
        signature.bind(*arguments)
    except TypeError:
        raise UsageError(
            f"kernel {target}: got signature {signature}, "
            f"expected to be called as ({', '.join(arguments)}). "
            "Name the operator it implements with --operator, or wrap it in a function."
        ) from None
