"""Triton's autotuner under control: which tuned kernels a call runs, and in which configuration.

An ``Autotuner`` may be made anywhere, also while the kernel is called, so they are met where they
run and not looked for. Where kernels run in Triton's interpreter there is nothing to time, and
without a GPU Triton cannot: the first configuration that is left for a call is taken there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

_MODULE = "triton.runtime.autotuner"


@dataclass(frozen=True)
class Tuned:
    """A kernel that ``triton.autotune`` tunes: its name, and its configurations as Triton's text.

    Two kernels that have both in common count as one.
    """

    kernel: str
    configurations: tuple[str, ...]


@dataclass
class Forced:
    """What to force while calls run, and what they met.

    tuned: the kernel to run in its configuration ``index``; all others take the first that is left.
    met: the tuned kernels that ran. ran: whether the configuration did; one that the kernel's own
    pruning removes for a call does not.
    """

    tuned: Tuned | None = None
    index: int = 0
    met: dict[Tuned, None] = field(default_factory=dict)
    ran: bool = False

    def choose(self, autotuner: Any, left: list[Any]) -> Any:
        """Return the configuration that a launch takes, of those left for it."""
        tuned = Tuned(autotuner.base_fn.__name__, tuple(map(str, autotuner.configs)))
        self.met[tuned] = None
        asked = autotuner.configs[self.index] if tuned == self.tuned else None
        if any(config is asked for config in left):
            self.ran = True
            return asked
        return left[0]


_forced: Forced | None = None
_watched = False


@contextmanager
def forcing(tuned: Tuned | None = None, index: int = 0) -> Iterator[Forced]:
    """Run tuned kernels untimed inside: ``tuned`` in one configuration, the others in their first.

    Nothing that an autotuner has found or will find is changed.
    """
    global _forced
    watch()
    before, _forced = _forced, Forced(tuned, index)
    try:
        yield _forced
    finally:
        _forced = before


def watch() -> None:
    """Be asked at every launch of a tuned kernel from now on, if Triton is loaded."""
    global _watched
    module: Any = sys.modules.get(_MODULE)
    if _watched or module is None or not hasattr(module, "Autotuner"):
        return
    original = module.Autotuner.run

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _forced is None and not _is_interpreted(self):
            return original(self, *args, **kwargs)
        self.nargs = dict(zip(self.arg_names, args, strict=False))  # what pruning looks at
        left = self.prune_configs(kwargs)
        before = self.configs
        self.configs = [_forced.choose(self, left) if _forced else left[0]]
        try:
            return original(self, *args, **kwargs)
        finally:
            self.configs = before

    module.Autotuner.run = run
    _watched = True


def is_unusable(error: BaseException | None) -> bool:
    """Tell whether an error is one at which the autotuner passes over a configuration."""
    if _MODULE not in sys.modules:
        return False
    from triton.compiler.errors import CompileTimeAssertionFailure
    from triton.runtime.errors import OutOfResources, PTXASError

    return isinstance(error, (OutOfResources, CompileTimeAssertionFailure, PTXASError))


def _is_interpreted(autotuner: Any) -> bool:
    from triton.runtime.jit import JITFunction

    kernel = autotuner.fn
    while hasattr(kernel, "fn") and not isinstance(kernel, JITFunction):
        if type(kernel).__name__ == "InterpretedFunction":
            return True
        kernel = kernel.fn
    return False
