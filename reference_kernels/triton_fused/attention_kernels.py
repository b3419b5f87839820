"""Attention, block by block: scores never reach memory, a softmax shifted by the largest so far.

Heads are (batch, head) pairs at strides of their own, so that (B, L, H, D) turned is not copied.
"""

import triton
import triton.language as tl

from reference_kernels.triton_pointwise import storage


@triton.jit
def _matrix(ptr, head, HEADS, stride_b, stride_h, rows, stride_l, stride_d, L, D, BLOCK_D):
    """Load rows of one head, BLOCK_D wide, 0 outside."""
    d = tl.arange(0, BLOCK_D)
    base = ptr + (head // HEADS) * stride_b + (head % HEADS) * stride_h
    places = base + rows[:, None] * stride_l + d[None, :] * stride_d
    return tl.load(places, mask=(rows < L)[:, None] & (d < D)[None, :], other=0)


@triton.jit
def _places(head, rows, L, D, BLOCK_D: tl.constexpr):
    """Offsets and mask of rows of one head in a contiguous result."""
    d = tl.arange(0, BLOCK_D)
    places = (head * L + rows[:, None]) * D + d[None, :]
    return places, (rows < L)[:, None] & (d < D)[None, :]


@triton.jit
def _part(rows, BLOCK: tl.constexpr):
    """Give the head and the rows of this program; one axis, as the others end at 65,535."""
    program = tl.program_id(0).to(tl.int64)
    parts = tl.cdiv(rows, BLOCK)
    return program // parts, program % parts * BLOCK + tl.arange(0, BLOCK)


@triton.jit
def _product(a, b):
    """a·bᵀ of loaded factors, summed in fp32, no TF32."""
    return tl.dot(storage.factor(a), tl.trans(storage.factor(b)), input_precision="ieee")


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, level_ptr, scale, HEADS, L, S, D, E,
    stride_qb, stride_qh, stride_ql, stride_qd, stride_kb, stride_kh, stride_kl, stride_kd,
    stride_vb, stride_vh, stride_vl, stride_vd,
    BLOCK_D: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Store softmax(q·kᵀ·scale)·v (heads, L, E), and log Σ exp of the scores (heads, L)."""
    head, m = _part(L, BLOCK_M)
    q = _matrix(q_ptr, head, HEADS, stride_qb, stride_qh, m, stride_ql, stride_qd, L, D, BLOCK_D)
    largest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    weight = tl.zeros((BLOCK_M,), tl.float32)
    sums = tl.zeros((BLOCK_M, BLOCK_E), tl.float32)
    for start in range(0, S, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N).to(tl.int64)
        k = _matrix(
            k_ptr, head, HEADS, stride_kb, stride_kh, n, stride_kl, stride_kd, S, D, BLOCK_D
        )
        scores = _product(q, k) * scale
        scores = tl.where((n < S)[None, :], scores, float("-inf"))
        higher = tl.maximum(largest, tl.max(scores, axis=1))
        # Where every score so far is -inf, a shift by it would make NaN of what is 0.
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        p = tl.exp(scores - shift[:, None])
        again = tl.exp(largest - shift)
        weight = weight * again + tl.sum(p, axis=1)
        v = _matrix(
            v_ptr, head, HEADS, stride_vb, stride_vh, n, stride_vl, stride_vd, S, E, BLOCK_E
        )
        sums = sums * again[:, None]
        p = storage.rounded_factor(p, v_ptr.dtype.element_ty)
        sums = tl.dot(p, storage.factor(v), sums, input_precision="ieee")
        largest = higher
    shift = tl.where(largest == float("-inf"), 0.0, largest)
    places, inside = _places(head, m, L, E, BLOCK_E)
    out = storage.narrow(sums / weight[:, None], out_ptr.dtype.element_ty)
    tl.store(out_ptr + places, out, mask=inside)
    tl.store(level_ptr + head * L + m, shift + tl.log(weight), mask=m < L)


@triton.jit
def attention_query_gradient_kernel(
    dy_ptr, q_ptr, k_ptr, v_ptr, out_ptr, level_ptr, dot_ptr, dq_ptr, scale, HEADS, L, S, D, E,
    stride_yb, stride_yh, stride_yl, stride_yd, stride_qb, stride_qh, stride_ql, stride_qd,
    stride_kb, stride_kh, stride_kl, stride_kd, stride_vb, stride_vh, stride_vl, stride_vd,
    BLOCK_D: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Store Σ dy∘out (heads, L) and dq = (p∘(dy·vᵀ - Σ dy∘out))·k·scale (heads, L, D)."""
    head, m = _part(L, BLOCK_M)
    q = _matrix(q_ptr, head, HEADS, stride_qb, stride_qh, m, stride_ql, stride_qd, L, D, BLOCK_D)
    dy = _matrix(dy_ptr, head, HEADS, stride_yb, stride_yh, m, stride_yl, stride_yd, L, E, BLOCK_E)
    places, inside = _places(head, m, L, E, BLOCK_E)
    out = storage.widen(tl.load(out_ptr + places, mask=inside, other=0))
    along = tl.sum(storage.widen(dy) * out, axis=1)
    tl.store(dot_ptr + head * L + m, along, mask=m < L)
    level = tl.load(level_ptr + head * L + m, mask=m < L, other=float("inf"))
    sums = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, S, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N).to(tl.int64)
        k = _matrix(
            k_ptr, head, HEADS, stride_kb, stride_kh, n, stride_kl, stride_kd, S, D, BLOCK_D
        )
        v = _matrix(
            v_ptr, head, HEADS, stride_vb, stride_vh, n, stride_vl, stride_vd, S, E, BLOCK_E
        )
        p = tl.exp(_product(q, k) * scale - level[:, None])
        ds = p * (_product(dy, v) - along[:, None])
        ds = tl.where((n < S)[None, :], ds, 0.0)
        ds = storage.rounded_factor(ds, k_ptr.dtype.element_ty)
        sums = tl.dot(ds, storage.factor(k), sums, input_precision="ieee")
    places, inside = _places(head, m, L, D, BLOCK_D)
    dq = storage.narrow(sums * scale, dq_ptr.dtype.element_ty)
    tl.store(dq_ptr + places, dq, mask=inside)


@triton.jit
def attention_key_gradient_kernel(
    dy_ptr, q_ptr, k_ptr, v_ptr, level_ptr, dot_ptr, dk_ptr, dv_ptr, scale, HEADS, L, S, D, E,
    stride_yb, stride_yh, stride_yl, stride_yd, stride_qb, stride_qh, stride_ql, stride_qd,
    stride_kb, stride_kh, stride_kl, stride_kd, stride_vb, stride_vh, stride_vl, stride_vd,
    BLOCK_D: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Store dk = dsᵀ·q·scale (heads, S, D) and dv = pᵀ·dy (heads, S, E)."""
    head, n = _part(S, BLOCK_N)
    k = _matrix(k_ptr, head, HEADS, stride_kb, stride_kh, n, stride_kl, stride_kd, S, D, BLOCK_D)
    v = _matrix(v_ptr, head, HEADS, stride_vb, stride_vh, n, stride_vl, stride_vd, S, E, BLOCK_E)
    of_keys = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    of_values = tl.zeros((BLOCK_N, BLOCK_E), tl.float32)
    for start in range(0, L, BLOCK_M):
        m = start + tl.arange(0, BLOCK_M).to(tl.int64)
        q = _matrix(
            q_ptr, head, HEADS, stride_qb, stride_qh, m, stride_ql, stride_qd, L, D, BLOCK_D
        )
        dy = _matrix(
            dy_ptr, head, HEADS, stride_yb, stride_yh, m, stride_yl, stride_yd, L, E, BLOCK_E
        )
        level = tl.load(level_ptr + head * L + m, mask=m < L, other=float("inf"))
        along = tl.load(dot_ptr + head * L + m, mask=m < L, other=0.0)
        p = tl.exp(_product(k, q) * scale - level[None, :])
        ds = p * (_product(v, dy) - along[None, :])
        p = storage.rounded_factor(p, dy_ptr.dtype.element_ty)
        of_values = tl.dot(p, storage.factor(dy), of_values, input_precision="ieee")
        ds = storage.rounded_factor(ds, q_ptr.dtype.element_ty)
        of_keys = tl.dot(ds, storage.factor(q), of_keys, input_precision="ieee")
    places, inside = _places(head, n, S, D, BLOCK_D)
    dk = storage.narrow(of_keys * scale, dk_ptr.dtype.element_ty)
    tl.store(dk_ptr + places, dk, mask=inside)
    places, inside = _places(head, n, S, E, BLOCK_E)
    tl.store(dv_ptr + places, storage.narrow(of_values, dv_ptr.dtype.element_ty), mask=inside)
