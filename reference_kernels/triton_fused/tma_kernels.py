"""The product of `matmul_kernels.py` where TMA moves the tiles: contiguous operands, an sm_90.

TMA takes no registers and no instructions of the programs that multiply, fills what lies past the
end with zeros and stores nothing there, so that there are no masks. K is stepped through as in
`matmul_kernel`: the same sums in the same order.

A persistent program takes one tile after another, and loads the next while it finishes one; that is
best for many tiles. A program for each tile is best where there are few.
"""

import triton
import triton.language as tl

from reference_kernels.triton_pointwise import storage

from . import activation
from .matmul_kernels import tile_of


@triton.jit
def _finish(
    sums,
    bias_ptr,
    out,
    pre,
    row,
    column,
    N,
    FORMULA: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    SAVE_PRE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Store f(sums + bias), `WIDTH` columns from `column` on, and sums + bias where SAVE_PRE."""
    if HAS_BIAS:
        n = column + tl.arange(0, WIDTH)
        sums += storage.widen(tl.load(bias_ptr + n, mask=n < N, other=0))[None, :]
    if SAVE_PRE:
        pre.store([row, column], storage.narrow(sums, pre.dtype))
    if FORMULA != "":
        sums = activation.gelu(sums, FORMULA, True)
    out.store([row, column], storage.narrow(sums, out.dtype))


@triton.jit
def _one_tile(
    tile,
    a,
    b,
    bias_ptr,
    out,
    pre,
    M,
    N,
    K,
    FORMULA: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    SAVE_PRE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    PARTS: tl.constexpr,
):
    row, column = tile_of(tile, M, N, BLOCK_M, BLOCK_N, GROUP)
    row *= BLOCK_M
    column *= BLOCK_N
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        sums = tl.dot(a.load([row, k]), b.load([column, k]).T, sums)
    WIDTH: tl.constexpr = BLOCK_N // PARTS
    if PARTS == 1:
        _finish(sums, bias_ptr, out, pre, row, column, N, FORMULA, HAS_BIAS, SAVE_PRE, WIDTH)
    else:
        left, right = tl.split(tl.permute(tl.reshape(sums, (BLOCK_M, 2, WIDTH)), (0, 2, 1)))
        _finish(left, bias_ptr, out, pre, row, column, N, FORMULA, HAS_BIAS, SAVE_PRE, WIDTH)
        column += WIDTH
        _finish(right, bias_ptr, out, pre, row, column, N, FORMULA, HAS_BIAS, SAVE_PRE, WIDTH)


@triton.jit
def tma_matmul_kernel(
    a,
    b,
    bias_ptr,
    out,
    pre,
    M,
    N,
    K,
    FORMULA: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    SAVE_PRE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    PARTS: tl.constexpr,
    PERSISTENT: tl.constexpr,
):
    """Store f(a·bᵀ + bias) (M, N), and a·bᵀ + bias where SAVE_PRE; FORMULA "": no f.

    a (M, K), b (N, K), out and pre (M, N): tensor descriptors of 16-bit tensors. The sums are
    finished in `PARTS` (1 or 2) parts, which need less shared memory. PERSISTENT: programs of a
    multiprocessor that share all tiles; 0: a program for each tile.
    """
    if PERSISTENT > 0:
        tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
        for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
            _one_tile(
                tile, a, b, bias_ptr, out, pre, M, N, K,
                FORMULA, HAS_BIAS, SAVE_PRE, BLOCK_M, BLOCK_N, BLOCK_K, GROUP, PARTS,
            )  # fmt: skip
    else:
        _one_tile(
            tl.program_id(0), a, b, bias_ptr, out, pre, M, N, K,
            FORMULA, HAS_BIAS, SAVE_PRE, BLOCK_M, BLOCK_N, BLOCK_K, GROUP, PARTS,
        )  # fmt: skip
