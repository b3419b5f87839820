"""Sizes of the dimensions of every operator: empty, 1, primes, and beside the sizes of tiles."""

from __future__ import annotations

from gelu_verify.operators.fused import FusedOperator

#: One below, at and above the sizes of tiles, and primes.
EDGES = (1, 2, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129)
#: Lengths of sums: one step of a tile, its neighbours, several, and a long one.
SUMS = (1, 31, 32, 33, 64, 512, 513, 1024, 4096)

Sizes = tuple[int, ...]

#: A large edge beside a small one: every edge in both places, at the cost of the middle.
_ACROSS = tuple(zip(EDGES, reversed(EDGES), strict=True))
_MATRICES = (*_ACROSS, (16, 16), (33, 33), (64, 64), (97, 61), (1, 1), (0, 17), (17, 0))

#: In the order of the operator's dimensions, without a batch or heads.
_SIZES: dict[str, tuple[Sizes, ...]] = {
    "linear_gelu": (
        *((5, k, 7) for k in SUMS),
        *((m, 19, n) for m, n in _ACROSS),
        *((size, size, size) for size in (16, 17, 33, 64)),
        *((97, 13, 61), (33, 64, 1), (1, 64, 33), (1, 1, 1), (128, 32, 128)),
        *((0, 16, 17), (17, 16, 0), (17, 0, 16)),
    ),
    "bias_gelu": _MATRICES,
    "geglu": _MATRICES,
    "layernorm_gelu": (*_MATRICES, *((5, n) for n in SUMS)),
    # n, c, h, w, o: even and odd images, one window, few and many channels.
    "conv_relu_pool": (
        *(
            (1, 1, 2, 2, 1),
            (2, 3, 5, 7, 4),
            (1, 16, 8, 8, 17),
            (3, 2, 17, 33, 5),
            (1, 33, 4, 6, 31),
        ),
        *((2, 1, 16, 16, 3), (1, 64, 3, 3, 2), (1, 512, 2, 3, 2), (0, 3, 4, 4, 5)),
    ),
    # l, d: keys beside the sizes of tiles, and lengths of both sums.
    "attention": (
        *((length, 16) for length in EDGES),
        *((5, d) for d in (1, 31, 32, 33, 64, 128)),
        *((513, 8), (64, 64), (0, 16)),
    ),
}


def of(operator: FusedOperator) -> tuple[Sizes, ...]:
    """Return the sizes to try, of the dimensions that a case must name."""
    return _SIZES[operator.name]


def small(operator: FusedOperator) -> tuple[Sizes, ...]:
    """Return a few cheap sizes, none empty and none a multiple of 8: tails of tiles in all."""
    if operator.name == "conv_relu_pool":
        return (2, 3, 7, 9, 5), (1, 5, 6, 13, 3), (3, 4, 5, 5, 7)
    count = len(_SIZES[operator.name][0])
    ladder = ((17, 33, 21), (33, 20, 17), (7, 65, 33), (19, 21, 35))
    return tuple(sizes[:count] for sizes in ladder)
