"""Host functions: tensors in, a fresh tensor out, of x's shape and dtype (fp32, bf16, fp16).

The output has the layout that `torch.empty_like` gives: x's own strides where x is dense, else
contiguous. Kernels run over memory in that order, so a dense transposed or channels-last x costs
nothing, and any other input (expanded, sliced) is copied once to the output's layout. Inputs are
never written to, and autograd does not see these calls.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch
import triton

from . import kernels

STORAGE = {
    torch.float32: torch.float32,
    torch.float16: torch.float16,
    torch.bfloat16: torch.int16,  # as bits, see storage.py
}
#: Elements a program, by the bytes of one; the fastest of 512 to 4096 with 2, 4 or 8 warps on an
#: H200. 16 or 32 elements a thread: an address costs little each.
GPU_BLOCK = {4: 2048, 2: 1024}
GPU_WARPS = 2
#: An interpreted program costs 30 ms whatever its size; from 2^19 elements on, NumPy's temporaries
#: leave the cache.
INTERPRETER_BLOCK = 262144


def gelu_erf(x: torch.Tensor) -> torch.Tensor:
    """x·Φ(x), elementwise."""
    return _map(kernels.gelu_erf_kernel, x)


def gelu_erf_guarded(x: torch.Tensor) -> torch.Tensor:
    """x·Φ(x), elementwise, but x for x > 6 and a zero for x < -6; NaN stays NaN."""
    return _map(kernels.gelu_erf_guarded_kernel, x)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """0.5x(1 + tanh(√(2/π)(x + 0.044715x³))), elementwise."""
    return _map(kernels.gelu_tanh_kernel, x)


def gelu_sigmoid(x: torch.Tensor) -> torch.Tensor:
    """x·σ(1.702x), elementwise."""
    return _map(kernels.gelu_sigmoid_kernel, x)


def gelu_erf_backward(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """dy·(Φ(x) + xφ(x)), elementwise."""
    return _map_pair(kernels.gelu_erf_backward_kernel, dy, x)


def gelu_tanh_backward(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """dy·GELU'(x) of the tanh form, elementwise."""
    return _map_pair(kernels.gelu_tanh_backward_kernel, dy, x)


def gelu_sigmoid_backward(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """dy·GELU'(x) of the sigmoid form, elementwise."""
    return _map_pair(kernels.gelu_sigmoid_backward_kernel, dy, x)


def _map(kernel: Any, x: torch.Tensor) -> torch.Tensor:
    """Run a kernel of one input."""
    _require_supported("x", x)
    out = torch.empty_like(x, requires_grad=False)
    _launch(kernel, [x], out)
    return out


def _map_pair(kernel: Any, dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Run a kernel of two inputs of equal shape, dtype and device."""
    _require_supported("x", x)
    _require_supported("dy", dy)
    if dy.shape != x.shape:
        raise ValueError(
            f"dy: got shape {tuple(dy.shape)}, expected x's {tuple(x.shape)}. Expand dy first."
        )
    if dy.dtype != x.dtype:
        raise TypeError(f"dy: got {dy.dtype}, expected x's {x.dtype}. Convert one of them.")
    if dy.device != x.device:
        raise ValueError(f"dy: got device {dy.device}, expected x's {x.device}. Move one of them.")
    out = torch.empty_like(x, requires_grad=False)
    _launch(kernel, [dy, x], out)
    return out


def _require_supported(name: str, tensor: torch.Tensor) -> None:
    """Raise where the kernels cannot take this tensor."""
    if not isinstance(tensor, torch.Tensor) or tensor.dtype not in STORAGE:
        got = getattr(tensor, "dtype", type(tensor).__name__)
        raise TypeError(
            f"{name}: got {got}, expected a tensor of float32, bfloat16 or float16. "
            f"Convert it first."
        )
    if tensor.device.type == "cpu" and not _interpreted():
        raise ValueError(
            f"{name}: got device cpu, expected a GPU. Move it there, or set TRITON_INTERPRET=1 "
            f"before triton is imported to run on the CPU."
        )


def _interpreted() -> bool:
    """Whether the kernels were defined under TRITON_INTERPRET=1."""
    return not isinstance(kernels.gelu_erf_kernel, triton.runtime.JITFunction)


def _in_layout_of(out: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Lay `tensor` out in the memory order of the dense `out`, in its storage type."""
    tensor = tensor.detach()
    if tensor.stride() != out.stride() or tensor.is_neg():
        tensor = torch.empty_like(out).copy_(tensor)
    return tensor.view(STORAGE[out.dtype])


def _launch(kernel: Any, inputs: list[torch.Tensor], out: torch.Tensor) -> None:
    """Fill `out`. Fusion is off so that only the `tl.fma` in the source are fused."""
    count = out.numel()
    if count == 0:
        return
    arguments = [_in_layout_of(out, tensor) for tensor in inputs]
    arguments.append(out.view(STORAGE[out.dtype]))
    block = GPU_BLOCK[out.element_size()]
    if _interpreted():
        block = min(INTERPRETER_BLOCK, triton.next_power_of_2(count))
    grid = (triton.cdiv(count, block),)
    device = torch.cuda.device(out.device) if out.is_cuda else contextlib.nullcontext()
    with device:
        kernel[grid](*arguments, count, BLOCK=block, num_warps=GPU_WARPS, enable_fp_fusion=False)
