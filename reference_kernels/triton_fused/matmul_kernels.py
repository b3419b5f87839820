"""A matrix product with bias and activation on its fp32 sums, one rounding at the end.

Every configuration steps through K in blocks of the same size, so the order of a sum, and with it
the result, does not depend on the tile that was chosen, nor on the rows that come with a row.
"""

import triton
import triton.language as tl

from reference_kernels.triton_pointwise import storage

from . import activation


@triton.jit
def tile_of(pid, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr):
    """Give the tile of a program; GROUP rows of tiles share their columns in the L2 cache."""
    across = tl.cdiv(N, BLOCK_N)
    first = pid // (GROUP * across) * GROUP
    height = min(tl.cdiv(M, BLOCK_M) - first, GROUP)
    within = pid % (GROUP * across)
    return first + within % height, within // height


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    bias_ptr,
    out_ptr,
    pre_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_bias,
    FORMULA: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    SAVE_PRE: tl.constexpr,
    FAST: tl.constexpr,
    EVEN_K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Store f(a·b + bias) (M, N) contiguous, and a·b + bias where SAVE_PRE; FORMULA "": no f.

    a (M, K) and b (K, N) at any strides.
    """
    row, column = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP)
    m = row * BLOCK_M + tl.arange(0, BLOCK_M)
    n = column * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K).to(tl.int64)
    # Rows and columns past the end are read again from the start, and not stored. They are counted
    # in 32 bits, where a remainder is cheap; offsets have 64.
    a_ptrs = a_ptr + (m % M).to(tl.int64)[:, None] * stride_am + k[None, :] * stride_ak
    b_ptrs = b_ptr + k[:, None] * stride_bk + (n % N).to(tl.int64)[None, :] * stride_bn
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        if EVEN_K:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=k[None, :] < K - start, other=0)
            b = tl.load(b_ptrs, mask=k[:, None] < K - start, other=0)
        sums = tl.dot(storage.factor(a), storage.factor(b), sums, input_precision="ieee")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if HAS_BIAS:
        bias = tl.load(bias_ptr + n.to(tl.int64) * stride_bias, mask=n < N, other=0)
        sums += storage.widen(bias)[None, :]
    offsets = m.to(tl.int64)[:, None] * N + n[None, :]
    inside = (m < M)[:, None] & (n < N)[None, :]
    if SAVE_PRE:
        tl.store(pre_ptr + offsets, storage.narrow(sums, pre_ptr.dtype.element_ty), mask=inside)
    if FORMULA != "":
        sums = activation.gelu(sums, FORMULA, FAST)
    tl.store(out_ptr + offsets, storage.narrow(sums, out_ptr.dtype.element_ty), mask=inside)
