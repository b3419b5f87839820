"""A kernel ready to be called: loaded, on a device, in one format."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from gelu_verify.formats import Format, tensors
from gelu_verify.kernels import activity, interpreter
from gelu_verify.kernels.failure import KernelFailure, ResultFault, failure
from gelu_verify.operators import Operator

#: What libraries say when they decline an input, as opposed to a fault.
_REFUSALS = ("not implemented for", "not support", "unsupported", "dtype", "contiguous")
#: Words that name the format of an input. "unsupported operand type(s)" is a fault in the kernel.
_FORMAT_WORDS = (
    *("dtype", "data type", "scalar type", "not implemented for"),
    *("float64", "float32", "float16", "bfloat16", "float8", "double", "half", "precision"),
    *("fp64", "fp32", "bf16", "fp16", "fp8"),
)


def wait_for(device: torch.device) -> None:
    """Wait until a device is done: what a kernel does on a GPU takes time, and fails, after a call.

    To be called where the time is the kernel's, else a hang there is never ended.
    """
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@dataclass
class Callee:
    """A callable with all that is declared about it, whatever it computes.

    seconds: wall time inside it so far. simulated: whether it ran in Triton's interpreter.
    """

    name: str
    formula: str
    fmt: Format
    device: torch.device
    function: Callable[..., Any]
    seconds: float = field(default=0.0, kw_only=True)
    simulated: bool = field(default=False, kw_only=True)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of every argument and of the result."""
        return tensors.dtype(self.fmt)

    def call(self, *arguments: torch.Tensor, **options: Any) -> Any:
        """Call the kernel on tensors of its own device and return what it gives, unchecked."""
        before = interpreter.launches()
        start = time.perf_counter()
        try:
            with activity.of_kernel():
                result = self.function(*arguments, **options)
                wait_for(self.device)
        except (Exception, SystemExit) as error:
            raise failure(error) from error
        finally:
            self.seconds += time.perf_counter() - start
        self.simulated = self.simulated or interpreter.launches() > before
        return result


@dataclass
class Subject(Callee):
    """A kernel of an elementwise operator.

    via: "autograd" where a backward is reached through the kernel's own differentiation.
    forward: the kernel itself, there.
    """

    operator: Operator
    via: str | None = None
    forward: Callable[..., Any] | None = None

    def apply(self, *arguments: torch.Tensor) -> Any:
        """Call the kernel element by element and return what it gives, unchecked.

        arguments: of one shape; the kernel gets them as its operator wants them, and a result of
        another shape than its first argument raises :class:`ResultFault` there.
        """
        shaped = self.operator.shaped(arguments)
        result = self.call(*shaped)
        if shaped[0].shape == arguments[0].shape:
            return result
        require_like(result, shaped[0].shape, self.dtype)
        return result.reshape(arguments[0].shape)

    def run(self, *arguments: torch.Tensor) -> torch.Tensor:
        """Call the kernel on CPU tensors (N,) and return its result on the CPU, shape checked.

        Both are copies: a kernel that overwrites its input or returns one buffer again and again
        must not change what is measured.
        """
        result = self.apply(*(part.to(self.device, copy=True) for part in arguments))
        require_like(result, arguments[-1].shape, self.dtype, self.device)
        return result.detach().to("cpu", copy=True)


def require_like(
    result: Any, shape: torch.Size, dtype: torch.dtype, device: torch.device | None = None
) -> None:
    """Raise :class:`ResultFault` unless ``result`` is a tensor of this shape, dtype and device."""
    if not isinstance(result, torch.Tensor):
        got = type(result).__name__
        raise ResultFault(f"kernel result: got {got}, expected a torch.Tensor.")
    if result.dtype != dtype or result.shape != shape:
        raise ResultFault(
            f"kernel result: got {result.dtype} {tuple(result.shape)}, "
            f"expected {dtype} {tuple(shape)}. Return that."
        )
    if device is not None and result.device.type != device.type:
        raise ResultFault(
            f"kernel result: got a tensor on {result.device}, expected {device}. "
            "A kernel keeps the device of x."
        )


def is_refusal(error: KernelFailure) -> bool:
    """Tell whether a kernel declined an input (a layout, a size) itself, instead of failing.

    A result that is none (``ResultFault``, without a cause) is no refusal.
    """
    cause = error.__cause__
    text = str(error).lower()
    return isinstance(cause, (AssertionError, NotImplementedError, TypeError, ValueError)) or (
        isinstance(cause, RuntimeError) and any(phrase in text for phrase in _REFUSALS)
    )


def declines_format(error: KernelFailure) -> bool:
    """Tell whether a kernel says that it does not take a format.

    Stricter than :func:`is_refusal`: a fault in the kernel must not look like a format it lacks.
    """
    if isinstance(error.__cause__, NotImplementedError):
        return True
    text = str(error.__cause__).lower()
    return is_refusal(error) and any(word in text for word in _FORMAT_WORDS)


def differentiable(subject: Subject) -> bool:
    """Tell whether the kernel's result carries a gradient back to x."""
    try:
        x = torch.ones(4, dtype=subject.dtype, device=subject.device, requires_grad=True)
        result = subject.call(x)
    except (KernelFailure, RuntimeError):
        return False
    return isinstance(result, torch.Tensor) and result.grad_fn is not None


def through_autograd(
    function: Callable[..., Any], *, interleaved: bool = False
) -> Callable[..., Any]:
    """Return ``(dy, x) -> gradient of function at x times dy``.

    interleaved: call the function on other values between its forward and its backward.
    """

    def backward(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        # detach() keeps the layout, so that a strided x stays a strided x.
        leaf = x.detach().requires_grad_()
        result = function(leaf)
        if interleaved:
            function((-x.detach()).requires_grad_())
        return torch.autograd.grad(result, leaf, dy)[0]

    return backward
