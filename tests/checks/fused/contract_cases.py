"""A case of linear_gelu for one function, and sound kernels of it that faulty ones build on."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from gelu_verify import contracts, formats
from gelu_verify.checks.fused import FusedCase
from gelu_verify.job import Job
from gelu_verify.kernels.spec import KernelSpec
from gelu_verify.kernels.subject import Callee


def fused_case(function, name="bf16", cases=(), formula="erf", **declared) -> FusedCase:
    spec = KernelSpec(
        name="k.py:f", target="k.py:f", operator="linear_gelu", formula=formula, **declared
    )
    task = Job(
        spec=spec, operator="linear_gelu", formula=formula, format=name,
        contract=contracts.get("cancelling"), depth="quick", cases=tuple(cases),
    )  # fmt: skip
    fmt = formats.get(name)
    return FusedCase(task, Callee("f", formula, fmt, torch.device("cpu"), function))


def sound(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.gelu(functional.linear(x, weight, bias))


def slope(z: Tensor) -> Tensor:
    phi = torch.exp(-0.5 * z * z) * 0.3989422804014327
    return 0.5 * torch.erfc(-z * 0.7071067811865476) + z * phi


class Fused(torch.autograd.Function):
    """Forward into its own empty buffer, backward by hand; one static hook for each fault."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        z = functional.linear(x.float(), weight.float(), bias.float())
        ctx.save_for_backward(x, weight, z)
        y = torch.empty(*x.shape[:-1], weight.shape[0], dtype=x.dtype, device=x.device)
        return y.copy_(functional.gelu(z))

    @staticmethod
    def backward(ctx, dy):
        x, weight, z = ctx.saved_tensors
        g = dy.float() * slope(z)
        dx, dweight = g @ weight.float(), g.t() @ x.float()
        return dx.to(x.dtype), dweight.to(x.dtype), g.sum(0).to(x.dtype)


def by_hand(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return Fused.apply(x, weight, bias)
