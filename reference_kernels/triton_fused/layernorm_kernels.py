"""Layer normalisation and GELU over rows, and its gradient: moments in two passes of fp32.

The second pass corrects the first ("corrected two-pass", Chan, Golub and LeVeque, 1983): of
d = x - mean the sum would be 0, so what it is instead corrects the mean and the variance. The
remainder of the mean stays a number of its own, which no addition rounds away.
"""

import triton
import triton.language as tl

from reference_kernels.triton_pointwise import storage

from . import activation


@triton.jit
def _row(ptr, m, n, stride_m, stride_n, M, N):
    """fp32 of a block of rows and columns, 0 outside."""
    inside = (m < M)[:, None] & (n < N)[None, :]
    places = m[:, None] * stride_m + n[None, :] * stride_n
    return storage.widen(tl.load(ptr + places, mask=inside, other=0))


@triton.jit
def _column(ptr, n, stride, N):
    return storage.widen(tl.load(ptr + n * stride, mask=n < N, other=0))[None, :]


@triton.jit
def _rows(BLOCK_M: tl.constexpr):
    return tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)


@triton.jit
def _columns(start, BLOCK_N: tl.constexpr):
    return start + tl.arange(0, BLOCK_N).to(tl.int64)


@triton.jit
def layernorm_gelu_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    moments_ptr,
    M,
    N,
    stride_xm,
    stride_xn,
    stride_weight,
    stride_bias,
    epsilon,
    FORMULA: tl.constexpr,
    FAST: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Store f(normed·weight + bias), (M, N), and mean, its rest, 1/√(var + ε): moments (3, M)."""
    m = _rows(BLOCK_M)
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, N, BLOCK_N):
        sums += _row(x_ptr, m, _columns(start, BLOCK_N), stride_xm, stride_xn, M, N)
    mean = (tl.sum(sums, axis=1) / N)[:, None]
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    squares = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, N, BLOCK_N):
        n = _columns(start, BLOCK_N)
        d = _row(x_ptr, m, n, stride_xm, stride_xn, M, N) - mean
        d = tl.where((n < N)[None, :], d, 0.0)
        sums += d
        squares += d * d
    rest = (tl.sum(sums, axis=1) / N)[:, None]
    variance = (tl.sum(squares, axis=1) / N)[:, None] - rest * rest
    inverse = 1.0 / tl.sqrt_rn(variance + epsilon)
    for start in range(0, N, BLOCK_N):
        n = _columns(start, BLOCK_N)
        x = _row(x_ptr, m, n, stride_xm, stride_xn, M, N)
        normed = ((x - mean) - rest) * inverse
        z = normed * _column(weight_ptr, n, stride_weight, N)
        z += _column(bias_ptr, n, stride_bias, N)
        y = storage.narrow(activation.gelu(z, FORMULA, FAST), out_ptr.dtype.element_ty)
        inside = (m < M)[:, None] & (n < N)[None, :]
        tl.store(out_ptr + m[:, None] * N + n[None, :], y, mask=inside)
    places = moments_ptr + m[:, None]
    tl.store(places, mean, mask=(m < M)[:, None])
    tl.store(places + M, rest, mask=(m < M)[:, None])
    tl.store(places + 2 * M, inverse, mask=(m < M)[:, None])


@triton.jit
def _gradient(
    dy_ptr, x_ptr, weight_ptr, bias_ptr, m, n, mean, rest, inverse, M, N,
    stride_dm, stride_dn, stride_xm, stride_xn, stride_weight, stride_bias,
    FORMULA: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """Give the normalised rows, g = dy·f'(normed·weight + bias), and h = g·weight."""
    x = _row(x_ptr, m, n, stride_xm, stride_xn, M, N)
    normed = ((x - mean) - rest) * inverse
    normed = tl.where((n < N)[None, :], normed, 0.0)
    weight = _column(weight_ptr, n, stride_weight, N)
    z = normed * weight + _column(bias_ptr, n, stride_bias, N)
    dy = _row(dy_ptr, m, n, stride_dm, stride_dn, M, N)
    g = activation.gelu_backward(dy, z, FORMULA, FAST)
    return normed, g, g * weight


@triton.jit
def layernorm_gelu_backward_kernel(
    dy_ptr,
    x_ptr,
    weight_ptr,
    bias_ptr,
    moments_ptr,
    dx_ptr,
    sums_ptr,
    M,
    N,
    stride_dm,
    stride_dn,
    stride_xm,
    stride_xn,
    stride_weight,
    stride_bias,
    FORMULA: tl.constexpr,
    FAST: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Store dx (M, N), and over this program's rows Σ g·normed and Σ g: sums (programs, 2, N)."""
    m = _rows(BLOCK_M)
    here = (m < M)[:, None]
    places = moments_ptr + m[:, None]
    mean = tl.load(places, mask=here, other=0)
    rest = tl.load(places + M, mask=here, other=0)
    inverse = tl.load(places + 2 * M, mask=here, other=0)
    level = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    along = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, N, BLOCK_N):
        n = _columns(start, BLOCK_N)
        normed, g, h = _gradient(
            dy_ptr, x_ptr, weight_ptr, bias_ptr, m, n, mean, rest, inverse, M, N,
            stride_dm, stride_dn, stride_xm, stride_xn, stride_weight, stride_bias, FORMULA, FAST,
        )  # fmt: skip
        level += h
        along += h * normed
        g = tl.where(here, g, 0.0)
        target = sums_ptr + tl.program_id(0).to(tl.int64) * 2 * N + n
        tl.store(target, tl.sum(g * normed, axis=0), mask=n < N)
        tl.store(target + N, tl.sum(g, axis=0), mask=n < N)
    level_mean = (tl.sum(level, axis=1) / N)[:, None]
    along_mean = (tl.sum(along, axis=1) / N)[:, None]
    for start in range(0, N, BLOCK_N):
        n = _columns(start, BLOCK_N)
        normed, _, h = _gradient(
            dy_ptr, x_ptr, weight_ptr, bias_ptr, m, n, mean, rest, inverse, M, N,
            stride_dm, stride_dn, stride_xm, stride_xn, stride_weight, stride_bias, FORMULA, FAST,
        )  # fmt: skip
        dx = ((h - level_mean) - normed * along_mean) * inverse
        dx = storage.narrow(dx, dx_ptr.dtype.element_ty)
        tl.store(dx_ptr + m[:, None] * N + n[None, :], dx, mask=here & (n < N)[None, :])
