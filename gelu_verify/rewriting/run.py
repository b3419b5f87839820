"""``gelu-verify check path.py:make_model --rewrite MODULE``: make, rewrite and verify a model."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from gelu_verify import contracts, formats
from gelu_verify.errors import UsageError
from gelu_verify.kernels import activity, loading
from gelu_verify.kernels.spec import KernelSpec
from gelu_verify.records import Results

#: Called when a stage starts in which the model or its operators run.
OnStage = Callable[[], None]


class Request(BaseModel):
    """One model to rewrite and verify; travels to the child process as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str = Field(description="a function that returns a model and its example inputs")
    operators: str = Field(description="a module with fused operators, by name or file")
    format: str | None = Field(None, description="what the model is converted to first")
    contract: str = contracts.DEFAULT
    device: str = "cpu"

    @property
    def command(self) -> str:
        """The command line that verifies it again."""
        parts = ["gelu-verify", "check", self.target, "--rewrite", self.operators]
        parts += ["--contract", self.contract]
        parts += ["--format", self.format] if self.format else []
        parts += ["--device", self.device] if self.device != "cpu" else []
        return shlex.join(parts)


def plan(
    targets: Sequence[str],
    operators: str,
    format_names: Sequence[str] = (),
    contract: str | None = None,
    device: str = "cpu",
) -> list[Request]:
    """Return a request for each model and format; as the model is made where none is named.

    Raises ``UsageError`` for an unknown format or contract.
    """
    names: list[str | None] = [formats.get(name).name for name in format_names]
    chosen = contracts.get(contract or contracts.DEFAULT).name
    return [
        Request(target=target, operators=operators, format=name, contract=chosen, device=device)
        for target in targets
        for name in names or [None]
    ]


def run_here(request: Request, on_stage: OnStage = lambda: None) -> Results:
    """Make, rewrite and verify a model in this process.

    The time of the model and of its operators is the kernel's. Raises ``UsageError`` where there is
    no such model, module or way to trace it.
    """
    if request.device == "cpu":
        os.environ.setdefault("TRITON_INTERPRET", "1")
    from gelu_verify.rewriting.verification import verify
    from reference_kernels.rewriting import rewrite

    on_stage()
    with activity.of_kernel():
        model, inputs = _made(request.target, request.format, request.device)
        try:
            rewritten, _ = rewrite(model, inputs, _operators(request.operators))
        except ValueError as error:
            raise UsageError(f"{request.target}: {error}") from None
    return verify(
        model,
        rewritten,
        inputs,
        contract=request.contract,
        name=request.target,
        reproduce=request.command,
        on_stage=on_stage,
    )


def _made(target: str, fmt: str | None, device: str) -> tuple[Any, tuple[Any, ...]]:
    """Return the model and its inputs, on the device and in the format."""
    import torch

    from gelu_verify.formats import tensors

    made = loading.load(KernelSpec(name=target, target=target), ())()
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], torch.nn.Module)):
        raise UsageError(
            f"{target}: got {type(made).__name__}, expected a torch.nn.Module and a tuple of its "
            "example inputs. Return (model, inputs)."
        )
    model, inputs = made
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    dtype = None if fmt is None else tensors.dtype(formats.get(fmt))
    model = model.to(device=device, dtype=dtype)
    return model, tuple(_moved(part, device, dtype) for part in inputs)


def _moved(part: Any, device: str, dtype: Any) -> Any:
    if not hasattr(part, "is_floating_point"):
        return part
    return part.to(device, dtype) if dtype and part.is_floating_point() else part.to(device)


def _operators(name: str) -> Any:
    """Return a module by name or file; it must have one of the operators at least."""
    module = loading.module(name)
    known = ("linear_gelu", "bias_gelu", "layernorm_gelu")
    if not any(hasattr(module, operator) for operator in known):
        raise UsageError(
            f"rewrite: got {name}, expected a module with one of {', '.join(known)}. "
            "Name reference_kernels.triton_fused, or a file of yours."
        )
    return module
