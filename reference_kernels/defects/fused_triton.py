"""A layer norm in Triton with a mask or a type left out; on a CPU it runs in the interpreter.

A program has some rows, each whole however long.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import fused_forms
from reference_kernels.triton_fused import activation, launch

_COMPILED_BLOCK = 4096


@triton.jit
def _layernorm_gelu_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    M,
    N,
    EPSILON: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    LOAD_TO_END: tl.constexpr,
    STORE_ALL: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Store f of normalised rows.

    LOAD_TO_END masks at the end of the tensor, not of the row; STORE_ALL stores the whole block;
    the sum of the row is in fp32 if WIDE, else in the type of x.
    """
    m = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.arange(0, BLOCK_N)
    places = m[:, None] * N + n[None, :]
    inside = (m < M)[:, None] & (n < N)[None, :]
    if LOAD_TO_END:
        row = tl.load(x_ptr + places, mask=places < M * N, other=0)
    else:
        row = tl.load(x_ptr + places, mask=inside, other=0)
    if WIDE:
        row = row.to(tl.float32)
    mean = tl.sum(row, axis=1).to(tl.float32) / N
    centred = row.to(tl.float32) - mean[:, None]
    variance = tl.sum(tl.where(inside, centred * centred, 0.0), axis=1) / N
    weight = tl.load(weight_ptr + n, mask=n < N, other=0).to(tl.float32)
    bias = tl.load(bias_ptr + n, mask=n < N, other=0).to(tl.float32)
    z = centred / tl.sqrt(variance + EPSILON)[:, None] * weight[None, :] + bias[None, :]
    y = activation.gelu(z, "erf", False).to(out_ptr.dtype.element_ty)
    if STORE_ALL:
        tl.store(out_ptr + places, y, mask=(m < M)[:, None])
    else:
        tl.store(out_ptr + places, y, mask=inside)


def _layernorm_gelu(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    *,
    load_to_end: bool = False,
    store_all: bool = False,
    wide: bool = True,
) -> Tensor:
    """Run the kernel over contiguous copies; no gradient."""
    launch.require("erf", x=x, weight=weight, bias=bias)
    rows = launch.rows(x.detach()).contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        width = launch.block(rows.shape[1], 2**20)
        # Compiled, a program of more than some thousand elements takes a minute to compile.
        most = 512 if launch.INTERPRETED else max(1, _COMPILED_BLOCK // width)
        height = launch.block(rows.shape[0], most, 1)
        launch.run(
            _layernorm_gelu_kernel,
            (triton.cdiv(rows.shape[0], height),),
            *(rows, weight.detach().contiguous(), bias.detach().contiguous(), out, *rows.shape),
            EPSILON=fused_forms.EPSILON,
            BLOCK_M=height,
            BLOCK_N=width,
            LOAD_TO_END=load_to_end,
            # Where nothing is known to lie behind the result, a stray store would harm the process.
            STORE_ALL=store_all and _room_behind(out) >= width,
            WIDE=wide,
        )
    return out


def _room_behind(part: Tensor) -> int:
    """Return how many elements the storage of a contiguous tensor has behind it."""
    held = part.untyped_storage().nbytes() // part.element_size()
    return int(held - part.storage_offset() - part.numel())


@defect(
    Kind.SHAPE,
    report="triton-lang/triton#9838",
    operator="layernorm_gelu",
    formats=("fp32",),
    rejected_by={"bound": "break"},
    unseen_because="a row of 1024 fills its block",
)
def row_loaded_to_the_end_of_the_tensor(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Loads are masked where the tensor ends, not the row: the next row enters the mean."""
    return _layernorm_gelu(x, weight, bias, load_to_end=True)


@defect(
    Kind.SHAPE,
    report="triton-lang/triton#630",
    operator="layernorm_gelu",
    formats=("fp32",),
    rejected_by={"memory": "bytes written outside"},
    unseen_because="a row of 1024 fills its block",
)
def row_stored_without_a_mask(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The whole block is stored: each row over the start of the next, the last one behind."""
    return _layernorm_gelu(x, weight, bias, store_all=True)


@defect(
    Kind.ACCUMULATION,
    report="microsoft/onnxruntime#11885",
    operator="layernorm_gelu",
    formats=("fp16",),
    rejected_by={"bound": "break"},
    unseen_because="a mean near 0 is summed well enough",
)
def mean_summed_in_fp16(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The row is summed in the type it was loaded in."""
    return _layernorm_gelu(x, weight, bias, wide=False)
