"""linear_gelu by kernels that `triton.autotune` tunes, in fp32, and what that changes."""

import triton
import triton.language as tl
from torch import Tensor

from reference_kernels.triton_fused import activation


@triton.jit
def tile_kernel(
    x, w, b, y, M, N, K, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, TAIL: tl.constexpr
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.arange(0, 64)
    k = tl.arange(0, BLOCK_K)
    sums = tl.zeros((BLOCK_M, 64), tl.float32)
    steps = tl.cdiv(K, BLOCK_K) if TAIL else K // BLOCK_K
    for step in range(steps):
        at = step * BLOCK_K + k
        left = tl.load(
            x + m[:, None] * K + at[None, :], mask=(m < M)[:, None] & (at < K)[None, :], other=0
        )
        right = tl.load(
            w + n[None, :] * K + at[:, None], mask=(n < N)[None, :] & (at < K)[:, None], other=0
        )
        sums = tl.dot(left, right, sums, input_precision="ieee")
    sums += tl.load(b + n, mask=n < N, other=0)[None, :]
    sums = activation.gelu(sums, "erf", False)
    tl.store(y + m[:, None] * N + n[None, :], sums, mask=(m < M)[:, None] & (n < N)[None, :])


def _configs(*tiles: tuple[int, int], **options: int) -> list[triton.Config]:
    return [triton.Config({"BLOCK_M": m, "BLOCK_K": k} | options) for m, k in tiles]


def _called(kernel, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    (m, k), n = x.shape, weight.shape[0]
    y = x.new_empty(m, n)
    grid = lambda chosen: (triton.cdiv(m, chosen["BLOCK_M"]),)  # noqa: E731
    kernel[grid](x.contiguous(), weight.contiguous(), bias.contiguous(), y, m, n, k)
    return y


def _tuned(configs, **options):
    return triton.autotune(configs, key=["M"], **options)(tile_kernel)


_ROWS = _tuned(_configs((16, 1), (64, 1), TAIL=True))  # a product at a time: no BLAS chooses
_STEPS = _tuned(_configs((64, 16), (64, 64), TAIL=True))
_TAILS = _tuned([*_configs((64, 16), TAIL=True), *_configs((64, 32), TAIL=False)])
_PRUNED = _tuned(
    [*_configs((64, 16), TAIL=True), *_configs((64, 32), TAIL=False)],
    prune_configs_by={
        "early_config_prune": lambda configs, named, **_: (
            [config for config in configs if named["K"] % config.kwargs["BLOCK_K"] == 0]
            or configs[:1]
        )
    },
)


def rows_alone(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Configurations that differ in rows: the same sums in the same order."""
    return _called(_ROWS, x, weight, bias)


def steps(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Configurations that differ in the order of a sum."""
    return _called(_STEPS, x, weight, bias)


def loses_the_tail(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The second configuration leaves out what is left of K after whole steps."""
    return _called(_TAILS, x, weight, bias)


def pruned(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The same, but that configuration is never taken where it is wrong."""
    return _called(_PRUNED, x, weight, bias)


def made_when_called(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A tuned kernel that no module or closure holds."""
    kernel = _tuned([*_configs((64, 16), TAIL=True), *_configs((64, 32), TAIL=False)])
    return _called(kernel, x, weight, bias)
