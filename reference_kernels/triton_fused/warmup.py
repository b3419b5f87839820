"""Compile ahead what the shapes of an application need, for this GPU or for one that is not here.

The host functions run on tensors without memory, so that a warmup compiles exactly what the same
call compiles when it is first met: the same kernels, tiles and specialisations. All tiles that
`triton.autotune` may choose are compiled; the choice itself needs the GPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget

from gelu_verify.errors import UnavailableError, UsageError

from . import compiled, launch
from .compiled import Artefact

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def warmup(
    shapes: Mapping[str, Sequence[str]],
    formats: Sequence[str] = ("bf16",),
    formulas: Sequence[str] = ("erf",),
    target: GPUTarget | None = None,
) -> tuple[Artefact, ...]:
    """Compile the forward and backward of operators at sizes, and store them in Triton's cache.

    shapes: operator to cases as findings write them (``{"linear_gelu": ["m=32,k=768,n=3072"]}``).
    target: another GPU than the current one, ``GPUTarget("cuda", 90, 32)``; none need be here.
    Returns what the cases use, also what was compiled before. Raises ``UnavailableError`` in
    Triton's interpreter, and ``UsageError`` for an unknown operator, format or size.
    """
    if launch.INTERPRETED:
        raise UnavailableError(
            "warmup: got Triton's interpreter, expected its compiler. Unset TRITON_INTERPRET."
        )
    found: list[Artefact] = []
    with _compiling_for(target):
        for operator, cases in shapes.items():
            for case in cases:
                for fmt in formats:
                    for formula in formulas:
                        found += _one(operator, case, fmt, formula)
    return tuple(dict.fromkeys(found))


def _one(operator: str, case: str, fmt: str, formula: str) -> list[Artefact]:
    # Shapes are the harness's; a model that only runs the kernels does not load it.
    from gelu_verify.inputs.problems import parse
    from gelu_verify.operators import fused

    if operator not in fused.NAMES or fmt not in _DTYPES:
        raise UsageError(
            f"warmup: got {operator} in {fmt}, expected one of {', '.join(fused.NAMES)} in one of "
            f"{', '.join(_DTYPES)}."
        )
    definition = fused.get(operator)
    dims = dict(parse(case, definition).dims)
    parts = [
        torch.empty(shape, dtype=_DTYPES[fmt], device="meta", requires_grad=True)
        for shape in definition.shapes(dims)
    ]
    function = getattr(import_module(__package__), operator)
    chosen = (formula,) if definition.has_formula else ()
    with compiled.ahead(" ".join((operator, case, *chosen))) as found:
        with torch.no_grad():  # linear_gelu is another kernel then, which saves nothing
            function(*parts, *chosen)
        result = function(*parts, *chosen)
        torch.autograd.grad(result, parts, torch.empty_like(result))
    return found


@contextlib.contextmanager
def _compiling_for(target: GPUTarget | None) -> Iterator[None]:
    """Let Triton's compiler see another GPU than the current one, or one where there is none."""
    if target is None:
        yield
        return
    driver: Any = triton.runtime.driver
    before = getattr(driver, "_active", None)
    driver.set_active(_Absent(target))
    try:
        yield
    finally:
        # None where no driver has been made yet: without a GPU there is none to make.
        driver.set_active(before)


class _Absent:
    """The part of a driver that compiling asks for.

    The device is named after the target, so that no kernel of it is taken for the current GPU's.
    """

    def __init__(self, target: GPUTarget) -> None:
        self.target = target

    def get_current_target(self) -> GPUTarget:
        """Return what to compile for."""
        return self.target

    def get_current_device(self) -> str:
        """Return the key under which kernels of this target are kept."""
        return f"ahead of {self.target.backend}:{self.target.arch}"

    def get_current_stream(self, device: str) -> int:
        """Return a stream that nothing is launched on."""
        return 0
