"""Correct kernels in a short arithmetic, step by step: sums in several orders, casts or none.

They round where a real kernel does and nowhere else: products and sums in fp32 (fp64 for fp64),
the activation in the same, named intermediates to the format where ``casts`` is set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from gelu_verify.formats import Format, tensors
from gelu_verify.reference import fast

ORDERS = ("sequential", "pairwise", "blocked")


@dataclass(frozen=True)
class Machine:
    """How a kernel computes.

    textbook: whether the activation is 0.5x(1 + erf) in the arithmetic, else float64, rounded.
    """

    fmt: Format
    order: str = "sequential"
    casts: bool = False
    textbook: bool = False

    @property
    def dtype(self) -> torch.dtype:
        """What it computes in."""
        return torch.float64 if self.fmt.bits == 64 else torch.float32

    def load(self, *parts: Tensor) -> tuple[Tensor, ...]:
        """Return arguments in the arithmetic."""
        return tuple(part.to(self.dtype) for part in parts)

    def store(self, part: Tensor) -> Tensor:
        """Return a result rounded to the format."""
        return part if self.fmt.bits == 64 else tensors.round_float64(part.double(), self.fmt)

    def cast(self, part: Tensor) -> Tensor:
        """Return an intermediate, rounded to the format where the kernel casts."""
        return self.store(part).to(self.dtype) if self.casts else part

    def total(self, part: Tensor, dim: int = -1) -> Tensor:
        """Return the sum over a dimension in the machine's order, one rounding an addition."""
        terms = list(part.unbind(dim))
        if not terms:
            return part.sum(dim)
        if self.order == "pairwise":
            while len(terms) > 1:
                pairs = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)]
                terms = pairs + terms[len(pairs) * 2 :]
            return terms[0]
        size = 8 if self.order == "blocked" else len(terms)
        blocks = [_running(terms[i : i + size]) for i in range(0, len(terms), size)]
        return _running(blocks)

    def matmul(self, a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return a @ b (+ bias, from which the sequential order starts)."""
        products = a.unsqueeze(-1) * b.unsqueeze(-3)
        if bias is None:
            return self.total(products, -2)
        if self.order == "sequential":
            start = bias.expand(products.select(-2, 0).shape).unsqueeze(-2)
            return self.total(torch.cat((start, products), -2), -2)
        return self.total(products, -2) + bias

    def gelu(self, s: Tensor, order: int = 0) -> Tensor:
        """Return erf's f or f' at s."""
        if not self.textbook:
            function = fast.derivative if order else fast.gelu
            return function(s.double().contiguous(), "erf").to(self.dtype)
        cdf = 0.5 * (1 + torch.erf(s * math.sqrt(0.5)))
        if order == 0:
            return s * cdf
        return cdf + s * ((-0.5 * s * s).exp() * (1 / math.sqrt(2 * math.pi)))


def _running(terms: list[Tensor]) -> Tensor:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def forward(name: str, machine: Machine, inputs: tuple[Tensor, ...]) -> Tensor:
    """Return the operator's result, in the format."""
    return machine.store(_FORWARD[name](machine, *machine.load(*inputs)))


def backward(
    name: str, machine: Machine, dy: Tensor, inputs: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """Return the gradient of each argument, in the format."""
    parts = _BACKWARD[name](machine, *machine.load(dy, *inputs))
    return tuple(machine.store(part) for part in parts)


def _linear(m: Machine, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return m.gelu(m.cast(m.matmul(x, weight.t(), bias)))


def _linear_backward(
    m: Machine, dy: Tensor, x: Tensor, weight: Tensor, bias: Tensor
) -> tuple[Tensor, ...]:
    g = m.cast(dy * m.gelu(m.cast(m.matmul(x, weight.t(), bias)), 1))
    return m.matmul(g, weight), m.matmul(g.t(), x), m.total(g, 0)


def _bias(m: Machine, x: Tensor, bias: Tensor) -> Tensor:
    return m.gelu(m.cast(x + bias))


def _bias_backward(m: Machine, dy: Tensor, x: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    g = dy * m.gelu(m.cast(x + bias), 1)
    return g, m.total(m.cast(g), 0)


def _geglu(m: Machine, gate: Tensor, up: Tensor) -> Tensor:
    return m.cast(m.gelu(gate)) * up


def _geglu_backward(m: Machine, dy: Tensor, gate: Tensor, up: Tensor) -> tuple[Tensor, ...]:
    return m.cast(dy * up) * m.gelu(gate, 1), dy * m.cast(m.gelu(gate))


def _normed(m: Machine, x: Tensor) -> tuple[Tensor, Tensor]:
    n = x.shape[-1]
    centred = x - (m.total(x) / n).unsqueeze(-1)
    root = 1 / torch.sqrt((m.total(centred * centred) / n).unsqueeze(-1) + 1e-5)
    return centred * root, root


def _layernorm(m: Machine, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return m.gelu(m.cast(_normed(m, x)[0] * weight + bias))


def _layernorm_backward(
    m: Machine, dy: Tensor, x: Tensor, weight: Tensor, bias: Tensor
) -> tuple[Tensor, ...]:
    normed, root = _normed(m, x)
    g = m.cast(dy * m.gelu(m.cast(normed * weight + bias), 1))
    h, n = g * weight, x.shape[-1]
    level = m.total(h).unsqueeze(-1) / n
    along = m.total(h * normed).unsqueeze(-1) / n
    return (h - level - normed * along) * root, m.total(g * normed, 0), m.total(g, 0)


def _convolved(m: Machine, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    patches = functional.unfold(x, 3, padding=1)
    flat = weight.reshape(1, weight.shape[0], -1)
    return m.matmul(flat, patches, bias.reshape(1, -1, 1)).unflatten(-1, x.shape[-2:])


def _conv(m: Machine, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.max_pool2d(m.cast(_convolved(m, x, weight, bias)).relu(), 2)


def _conv_backward(
    m: Machine, dy: Tensor, x: Tensor, weight: Tensor, bias: Tensor
) -> tuple[Tensor, ...]:
    sums = m.cast(_convolved(m, x, weight, bias)).requires_grad_()
    pooled = functional.max_pool2d(sums.relu(), 2)
    (g,) = torch.autograd.grad(pooled, sums, dy)
    columns = g.transpose(0, 1).flatten(1)
    patches = functional.unfold(x, 3, padding=1).transpose(1, 2).flatten(0, 1)
    turned = weight.flip(2, 3).transpose(0, 1).reshape(1, x.shape[1], -1)
    dx = m.matmul(turned, functional.unfold(g, 3, padding=1)).reshape(x.shape)
    return dx, m.matmul(columns, patches).reshape(weight.shape), m.total(columns, 1)


def _probabilities(m: Machine, q: Tensor, k: Tensor) -> tuple[Tensor, float]:
    scale = 1 / math.sqrt(q.shape[-1])
    scores = m.cast(m.cast(m.matmul(q, k.transpose(-2, -1))) * scale)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    return m.cast(weights / m.total(weights).unsqueeze(-1)), scale


def _attention(m: Machine, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return m.matmul(_probabilities(m, q, k)[0], v)


def _attention_backward(
    m: Machine, dy: Tensor, q: Tensor, k: Tensor, v: Tensor
) -> tuple[Tensor, ...]:
    p, scale = _probabilities(m, q, k)
    dp = m.cast(m.matmul(dy, v.transpose(-2, -1)))
    ds = m.cast(p * (dp - m.total(p * dp).unsqueeze(-1)))
    ds = m.cast(ds * scale)
    turned = ds.transpose(-2, -1)
    return m.matmul(ds, k), m.matmul(turned, q), m.matmul(p.transpose(-2, -1), dy)


_FORWARD = {
    "linear_gelu": _linear,
    "bias_gelu": _bias,
    "geglu": _geglu,
    "layernorm_gelu": _layernorm,
    "conv_relu_pool": _conv,
    "attention": _attention,
}
_BACKWARD = {
    "linear_gelu": _linear_backward,
    "bias_gelu": _bias_backward,
    "geglu": _geglu_backward,
    "layernorm_gelu": _layernorm_backward,
    "conv_relu_pool": _conv_backward,
    "attention": _attention_backward,
}
