"""conv_relu_pool: host function and gradient. Saved: x, the weight, and the picks (a byte each)."""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import conv_kernels, launch


def conv_relu_pool(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the 2×2 maxima of relu(conv3×3(x) + bias), padding 1: (N, O, H//2, W//2).

    x (N, C, H, W), weight (O, C, 3, 3), bias (O,), any strides. A direct sum of 9·C products in
    fp32, no TF32 and no transforms. Raises for other shapes and dtypes.
    """
    launch.require("erf", x=x, weight=weight, bias=bias)
    if x.dim() != 4:
        raise ValueError(f"x: got shape {tuple(x.shape)}, expected (N, C, H, W).")
    launch.require_shape("weight", weight, (*bias.shape, x.shape[1], 3, 3))
    return _ConvReluPool.apply(x, weight, bias)


def _tile(places: int, c: int, o: int) -> dict[str, int]:
    places_most, channels_most = (16384, 128) if launch.INTERPRETED else (64, 32)
    return {
        "BLOCK_P": launch.block(places, places_most),
        "BLOCK_O": launch.block(o, channels_most),
        "BLOCK_C": launch.block(c, channels_most),
    }


class _ConvReluPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        (n, c, h, w), o = x.shape, weight.shape[0]
        out = torch.empty((n, o, h // 2, w // 2), dtype=x.dtype, device=x.device)
        pick = torch.empty(out.shape, dtype=torch.int8, device=x.device)
        if out.numel():
            places = n * (h // 2) * (w // 2)
            tile = _tile(places, c, o)
            launch.run(
                conv_kernels.conv_relu_pool_kernel,
                (triton.cdiv(places, tile["BLOCK_P"]), triton.cdiv(o, tile["BLOCK_O"])),
                *(launch.stored(part) for part in (x, weight, bias, out)),
                *(pick, *x.shape, *out.shape[1:], *x.stride(), *weight.stride(), bias.stride(0)),
                **tile,
            )
        ctx.save_for_backward(x, weight, pick)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, weight, pick = ctx.saved_tensors
        (n, c, h, w), o = x.shape, weight.shape[0]
        dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        dweight = torch.empty(weight.shape, dtype=x.dtype, device=x.device)
        tile = _tile(n * h * w, c, o)
        of_places, of_o, of_c = (
            triton.cdiv(size, tile[f"BLOCK_{name}"])
            for name, size in (("P", n * h * w), ("O", o), ("C", c))
        )
        sizes = (*x.shape, *dy.shape[1:], *dy.stride())
        if dx.numel():
            launch.run(
                conv_kernels.conv_input_gradient_kernel,
                (of_places, of_c),
                *(launch.stored(dy), pick, launch.stored(weight), launch.stored(dx)),
                *(*sizes, *weight.stride()),
                **tile,
            )
        if dweight.numel():
            launch.run(
                conv_kernels.conv_weight_gradient_kernel,
                (9, of_o, of_c),
                *(launch.stored(dy), pick, launch.stored(x), launch.stored(dweight)),
                *(*sizes, *x.stride()),
                **tile,
            )
        dbias = torch.where(pick < 4, dy.float(), 0.0).sum((0, 2, 3))
        return dx, dweight, dbias.to(x.dtype)
