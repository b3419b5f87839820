"""What the field's usual test of a fused kernel says, and what the derived bound says instead.

The usual test: unit normals, x 1024×768, weight 3072×768, bias 3072, ``max |fused - eager| < 1e-5``
in fp32. Here each kernel is held to it, and to the bound of each element
(:mod:`gelu_verify.bounds`). ``python -m benchmarks.usual_test [device]`` prints the tables of
``docs/usual_test.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn import functional

from gelu_verify import contracts, formats, provenance
from gelu_verify.bounds import Arithmetic
from gelu_verify.checks.fused.ratios import judged
from gelu_verify.operators import fused
from gelu_verify.report.numbers import figure
from reference_kernels import torch_fused

_M, _K, _N = 1024, 768, 3072
_LIMIT = 1e-5
_CUT = -4.9

Kernel = Callable[[Tensor, Tensor, Tensor], Tensor]


def rounded_once(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the result of float64, rounded once: no fp32 kernel can be nearer to the truth."""
    sums = functional.linear(x.double(), weight.double(), bias.double())
    return (0.5 * sums * torch.erfc(sums * -(0.5**0.5))).to(x.dtype)


def other_order(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return eager's own two kernels with the terms of the sums in reverse order."""
    return torch_fused.linear_gelu(x.flip(1), weight.flip(1), bias)


def cut(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return eager with a fault: 0 wherever the pre-activation is below -4.9."""
    sums = functional.linear(x, weight, bias)
    return torch.where(sums < _CUT, torch.zeros_like(sums), functional.gelu(sums))


_KERNELS: dict[str, Kernel] = {
    "eager": torch_fused.linear_gelu,
    "eager, other order": other_order,
    "rounded once": rounded_once,
    "0 below -4.9": cut,
}


def main(device: str = "cpu") -> None:
    """Print where it ran, the verdicts on each kernel, and what most outputs are."""
    generator = torch.Generator().manual_seed(0)
    shapes = ((_M, _K), (_N, _K), (_N,))
    inputs = tuple(torch.randn(shape, generator=generator).to(device) for shape in shapes)
    fmt, operator = formats.get("fp32"), fused.get("linear_gelu")
    arithmetic = Arithmetic.of(fmt, contracts.get("cancelling"), device)
    exact = operator.forward(inputs, "erf", arithmetic)
    eager = torch_fused.linear_gelu(*inputs).double()

    console = Console(width=100)
    console.print(_where(device))
    table = Table(
        "kernel", "max |k - eager|", "usual test", "max |k - exact|", "error/bound", "broken"
    )
    for name, kernel in _KERNELS.items():
        result = kernel(*inputs)
        apart = float((result.double() - eager).abs().max())
        off = float((result.double() - exact.value).abs().max())
        ratios = judged(result, exact, fmt, arithmetic.contract, name)
        usual = "passes" if apart < _LIMIT else "fails"
        shown = figure(ratios.max_ratio)
        table.add_row(name, f"{apart:.2g}", usual, f"{off:.2g}", shown, f"{ratios.broken:,}")
    console.print(table)
    for line in _outputs(inputs, eager, exact.value, exact.total):
        console.print(line)


def _where(device: str) -> str:
    found = provenance.environment(provenance.runtime(device))
    machine = found.device or f"{found.processor} ({found.instruction_set})"
    return f"{found.date}, {machine}, Python {found.python}, torch {torch.__version__}"


def _outputs(inputs: tuple[Tensor, ...], eager: Tensor, exact: Tensor, bound: Tensor) -> list[str]:
    sums = functional.linear(*(part.double() for part in inputs))
    smallest = 2.0**-150  # half the smallest subnormal of fp32

    def share(mask: Tensor) -> str:
        return f"{float(mask.double().mean()):.1%}"

    return [
        f"pre-activations: standard deviation {float(sums.std()):.3g}",
        f"eager's output is exactly 0: {share(eager == 0)}",
        f"the exact value rounds to 0: {share(exact.abs() <= smallest)}",
        f"|exact| < {_LIMIT:g}: {share(exact.abs() < _LIMIT)}; any value below it passes there",
        f"the activation is x to the last bit (x > 5.3475): {share(sums > 5.3475156)}",
        f"bound of an element: {_spread(bound)}",
        f"|eager - exact|: {_spread((eager - exact).abs())}",
    ]


def _spread(part: Tensor) -> str:
    ranked = part.flatten().sort().values
    picks = {q: float(ranked[int(q * (len(ranked) - 1))]) for q in (0.0, 0.5, 1.0)}
    return f"least {picks[0.0]:.2g}, median {picks[0.5]:.2g}, largest {picks[1.0]:.2g}"


if __name__ == "__main__":
    main(*sys.argv[1:])
