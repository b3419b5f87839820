"""Matrix products in an arithmetic of choice, emulated in float64, and kernels made of them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tests import faulty_kernels

#: Takes float64 (M, K) and (N, K), gives float64 (M, N).
Product = Callable[[Tensor, Tensor], Tensor]


def to_bits(values: Tensor, bits: int, *, truncate: bool = False) -> Tensor:
    """Round (or truncate) to so many significant bits, without a limit of range."""
    mantissa, exponent = torch.frexp(values)
    scaled = mantissa * 2.0**bits
    whole = scaled.trunc() if truncate else scaled.round()
    return torch.where(torch.isfinite(values), torch.ldexp(whole, exponent - bits), values)


def rounded(values: Tensor, name: str) -> Tensor:
    """Round float64 values to an arithmetic's format."""
    if name == "tf32":
        return to_bits(values, 11)
    dtypes = {
        "fp64": torch.float64,
        "fp32": torch.float32,
        "fp16": torch.float16,
        "bf16": torch.bfloat16,
    }
    return values.to(dtypes[name]).double()


def sequential(products: str = "fp64", sums: str = "fp32") -> Product:
    """Add one product after another, each sum rounded."""
    return in_blocks(1, sums, products, inner=sums)


def in_blocks(block: int, sums: str, products: str = "fp64", inner: str = "fp32") -> Product:
    """Add the terms of a block in ``inner``, and the blocks in ``sums``."""

    def multiply(left: Tensor, right: Tensor) -> Tensor:
        left, right = rounded(left, products), rounded(right, products)
        total = torch.zeros(left.shape[0], right.shape[0], dtype=torch.float64)
        for start in range(0, left.shape[1], block):
            part = torch.zeros_like(total)
            for k in range(start, min(start + block, left.shape[1])):
                part = rounded(part + left[:, k, None] * right[:, k], inner)
            total = rounded(total + part, sums)
        return total

    return multiply


def in_bits(bits: int) -> Product:
    """Add one product after another, each sum truncated to so many bits."""

    def multiply(left: Tensor, right: Tensor) -> Tensor:
        total = torch.zeros(left.shape[0], right.shape[0], dtype=torch.float64)
        for k in range(left.shape[1]):
            total = to_bits(total + left[:, k, None] * right[:, k], bits, truncate=True)
        return total

    return multiply


def in_lanes(lanes: int, sums: str = "fp32") -> Product:
    """Add term k to the sum of lane k mod lanes, then the lanes one after another."""

    def multiply(left: Tensor, right: Tensor) -> Tensor:
        totals = [
            sequential("fp64", sums)(left[:, lane::lanes], right[:, lane::lanes])
            for lane in range(min(lanes, left.shape[1]))
        ]
        whole = totals[0]
        for total in totals[1:]:
            whole = rounded(whole + total, sums)
        return whole

    return multiply


def pairwise(sums: str = "fp32") -> Product:
    """Add neighbours, then neighbours of those."""

    def multiply(left: Tensor, right: Tensor) -> Tensor:
        terms = [left[:, k, None] * right[:, k] for k in range(left.shape[1])]
        while len(terms) > 1:
            pairs = zip(terms[::2], terms[1::2], strict=False)
            odd = terms[-1:] if len(terms) % 2 else []
            terms = [rounded(a + b, sums) for a, b in pairs] + odd
        return terms[0]

    return multiply


def tensor_core(block: int, products: str = "fp64", extra: int = 1) -> Product:
    """Add a block and the sum so far at once: aligned to the largest, truncated to 24 + extra bits.

    The result is truncated to 24 bits (Fasi, Higham, Mikaitis and Pranesh 2021, section 3).
    """

    def multiply(left: Tensor, right: Tensor) -> Tensor:
        left, right = rounded(left, products), rounded(right, products)
        total = torch.zeros(left.shape[0], right.shape[0], dtype=torch.float64)
        for start in range(0, left.shape[1], block):
            ends = range(start, min(start + block, left.shape[1]))
            terms = torch.stack([total, *(left[:, k, None] * right[:, k] for k in ends)])
            exponent = torch.frexp(terms.abs().amax(0)).exponent
            quantum = torch.ldexp(torch.ones_like(total), exponent - 24 - extra)
            aligned = (terms / quantum).trunc() * quantum
            total = to_bits(aligned.sum(0), 24, truncate=True)
        return total

    return multiply


def linear_gelu(product: Product) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return a kernel with sums of ``product``; all else is float64, rounded once at the end."""

    def kernel(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        sums = product(x.double(), weight.double()) + bias.double()
        return faulty_kernels.correct(sums).to(x.dtype)

    return kernel
