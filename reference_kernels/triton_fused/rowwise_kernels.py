"""bias + GELU over rows and columns, its gradient, and the sums of the gradient over rows."""

import triton
import triton.language as tl

from reference_kernels.triton_pointwise import storage

from . import activation


@triton.jit
def _places(M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Give the rows and columns of this program; one axis, as the others end at 65,535."""
    part = tl.program_id(0).to(tl.int64)
    down = tl.cdiv(M, BLOCK_M)
    m = part % down * BLOCK_M + tl.arange(0, BLOCK_M)
    n = part // down * BLOCK_N + tl.arange(0, BLOCK_N)
    return m, n, (m < M)[:, None] & (n < N)[None, :]


@triton.jit
def _block(ptr, m, n, inside, stride_m, stride_n):
    """fp32 of the elements at rows m and columns n; 0 outside."""
    places = m[:, None] * stride_m + n[None, :] * stride_n
    return storage.widen(tl.load(ptr + places, mask=inside, other=0))


@triton.jit
def _argument(x_ptr, bias_ptr, m, n, inside, stride_xm, stride_xn, stride_bias, N, HAS_BIAS):
    """fp32 x + bias, x alone where there is no bias."""
    z = _block(x_ptr, m, n, inside, stride_xm, stride_xn)
    if HAS_BIAS:
        bias = tl.load(bias_ptr + n * stride_bias, mask=n < N, other=0)
        z += storage.widen(bias)[None, :]
    return z


@triton.jit
def bias_gelu_kernel(
    x_ptr,
    bias_ptr,
    out_ptr,
    M,
    N,
    stride_xm,
    stride_xn,
    stride_bias,
    FORMULA: tl.constexpr,
    FAST: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Store f(x + bias), (M, N) contiguous."""
    m, n, inside = _places(M, N, BLOCK_M, BLOCK_N)
    z = _argument(x_ptr, bias_ptr, m, n, inside, stride_xm, stride_xn, stride_bias, N, True)
    y = storage.narrow(activation.gelu(z, FORMULA, FAST), out_ptr.dtype.element_ty)
    tl.store(out_ptr + m[:, None] * N + n[None, :], y, mask=inside)


@triton.jit
def bias_gelu_backward_kernel(
    dy_ptr,
    x_ptr,
    bias_ptr,
    out_ptr,
    sums_ptr,
    M,
    N,
    stride_dm,
    stride_dn,
    stride_xm,
    stride_xn,
    stride_bias,
    HAS_BIAS: tl.constexpr,
    FORMULA: tl.constexpr,
    FAST: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Store g = dy·f'(x + bias), (M, N) contiguous, and its fp32 sum over this program's rows."""
    m, n, inside = _places(M, N, BLOCK_M, BLOCK_N)
    z = _argument(x_ptr, bias_ptr, m, n, inside, stride_xm, stride_xn, stride_bias, N, HAS_BIAS)
    dy = _block(dy_ptr, m, n, inside, stride_dm, stride_dn)
    g = activation.gelu_backward(dy, z, FORMULA, FAST)
    out = storage.narrow(g, out_ptr.dtype.element_ty)
    tl.store(out_ptr + m[:, None] * N + n[None, :], out, mask=inside)
    sums = tl.sum(tl.where(inside, g, 0.0), axis=0)
    block = tl.program_id(0).to(tl.int64) % tl.cdiv(M, BLOCK_M)
    tl.store(sums_ptr + block * N + n, sums, mask=n < N)


@triton.jit
def geglu_kernel(
    gate_ptr,
    up_ptr,
    out_ptr,
    M,
    N,
    stride_gm,
    stride_gn,
    stride_um,
    stride_un,
    FORMULA: tl.constexpr,
    FAST: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Store f(gate)·up, (M, N) contiguous."""
    m, n, inside = _places(M, N, BLOCK_M, BLOCK_N)
    gate = _block(gate_ptr, m, n, inside, stride_gm, stride_gn)
    up = _block(up_ptr, m, n, inside, stride_um, stride_un)
    y = activation.gelu(gate, FORMULA, FAST) * up
    y = storage.narrow(y, out_ptr.dtype.element_ty)
    tl.store(out_ptr + m[:, None] * N + n[None, :], y, mask=inside)


@triton.jit
def geglu_backward_kernel(
    dy_ptr,
    gate_ptr,
    up_ptr,
    dgate_ptr,
    dup_ptr,
    M,
    N,
    stride_dm,
    stride_dn,
    stride_gm,
    stride_gn,
    stride_um,
    stride_un,
    FORMULA: tl.constexpr,
    FAST: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Store dy·up·f'(gate) and dy·f(gate), both (M, N) contiguous."""
    m, n, inside = _places(M, N, BLOCK_M, BLOCK_N)
    dy = _block(dy_ptr, m, n, inside, stride_dm, stride_dn)
    gate = _block(gate_ptr, m, n, inside, stride_gm, stride_gn)
    up = _block(up_ptr, m, n, inside, stride_um, stride_un)
    dtype: tl.constexpr = dgate_ptr.dtype.element_ty
    dgate = activation.gelu_backward(dy * up, gate, FORMULA, FAST)
    dup = dy * activation.gelu(gate, FORMULA, FAST)
    offsets = m[:, None] * N + n[None, :]
    tl.store(dgate_ptr + offsets, storage.narrow(dgate, dtype), mask=inside)
    tl.store(dup_ptr + offsets, storage.narrow(dup, dtype), mask=inside)
