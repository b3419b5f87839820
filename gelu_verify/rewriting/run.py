"""``gelu-verify check path.py:make_model --rewrite MODULE``: make, rewrite and verify a model."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import Any

from gelu_verify import contracts, formats
from gelu_verify.errors import UsageError
from gelu_verify.kernels import loading
from gelu_verify.kernels.spec import KernelSpec
from gelu_verify.records import KernelResult, Results


def run(
    targets: list[str],
    operators: str,
    format_names: tuple[str, ...] = (),
    contract: str | None = None,
    device: str = "cpu",
) -> Results:
    """Verify models in this process, each in every format; in the format it is made in if none.

    targets: functions without arguments that return a model and its example inputs.
    operators: a module with ``linear_gelu``, ``bias_gelu``, ``layernorm_gelu``, by name or file.
    """
    if device == "cpu":
        os.environ.setdefault("TRITON_INTERPRET", "1")
    from gelu_verify import provenance

    contract = contracts.get(contract or contracts.DEFAULT).name
    names: list[str | None] = [formats.get(name).name for name in format_names]
    results = [
        result
        for target in targets
        for name in names or [None]
        for result in _verified(target, operators, name, contract, device)
    ]
    environment = provenance.environment(provenance.runtime(device))
    return Results(environment=environment, kernels=tuple(results))


def _verified(
    target: str, operators: str, fmt: str | None, contract: str, device: str
) -> Iterator[KernelResult]:
    from gelu_verify.rewriting.verify import verify
    from reference_kernels.rewriting import rewrite

    model, inputs = _made(target, fmt, device)
    try:
        rewritten, _ = rewrite(model, inputs, _operators(operators))
    except ValueError as error:
        raise UsageError(f"{target}: {error}") from None
    parts = ["gelu-verify", "check", target, "--rewrite", operators, "--contract", contract]
    parts += ["--format", fmt] if fmt else []
    parts += ["--device", device] if device != "cpu" else []
    done = verify(
        model, rewritten, inputs, contract=contract, name=target, reproduce=shlex.join(parts)
    )
    yield from done.kernels


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
