"""The record that every place is: an operator as layers of a model hold it, and its sites.

A site is the operator's function, ``(*arguments) -> result``, shapes as in its module of
:mod:`gelu_verify.operators.fused`. Narrower operators fit in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

from gelu_verify.convergence import exact as formulas
from gelu_verify.convergence.sites import kernels
from gelu_verify.convergence.sites.autocast import lifted
from gelu_verify.convergence.sites.kernels import Activation, Kernel
from gelu_verify.formats import Format
from gelu_verify.operators import fused

Site = Callable[..., Tensor]


@dataclass(frozen=True)
class Isolated:
    """How the activation in a site is looked at alone.

    input: what it is given, from the site's arguments. gradient: what comes back to it, from the
    gradient dy of the site's result and its arguments. alone: f(x) of any x, from a site.
    """

    input: Callable[..., Tensor]
    gradient: Callable[..., Tensor]
    alone: Callable[[Site, Tensor], Tensor]


@dataclass(frozen=True)
class Place:
    """An operator where kernels of it, and narrower ones, can stand.

    written: the operator as torch writes it, around an activation, which it may not have.
    fitted: how kernels that are no activations stand here, by operator; those of this operator
    stand for all of it where it is not among them.
    whole: whether the exact arms compute all of it in float64, or its activation only.
    isolated: None where no arguments reduce the operator to its activation.
    """

    operator: str
    written: Callable[[Activation], Site]
    fitted: Mapping[str, Callable[[Kernel], Site]] = field(default_factory=dict)
    whole: bool = True
    isolated: Isolated | None = None

    def exact(self, formula: str) -> Site:
        """Return the operator computed in float64 and rounded once to the dtype it is given."""
        site = self.written(lambda x: formulas.gelu(x, formula))
        return _rounded_once(site) if self.whole else site

    def eager(self, formula: str) -> Site:
        """Return the operator as torch computes it."""
        return self.written(eager(formula))

    def noisy(self, formula: str, fmt: Format, generator: torch.Generator) -> Site:
        """Return torch's result times 1 ± 2^(1−p), p the format's precision, signs at random.

        That is one ULP where the result is just above a power of two, two just below.
        """
        own, size = self.eager(formula), 2.0 ** (1 - fmt.precision)

        def site(*arguments: Tensor) -> Tensor:
            y = own(*arguments)
            drawn = torch.rand(y.shape, generator=generator, device=generator.device)
            return y * torch.where(drawn < 0.5, 1 - size, 1 + size).to(y.dtype)

        return site

    def of_kernel(
        self, operator: str, formula: str, function: Kernel, backward: Kernel | None = None
    ) -> Site:
        """Return the site with a kernel of an operator in it, one that there is room for.

        backward: ``(dy, x)``, for a ``gelu`` kernel without one of its own.
        A kernel that raises, or gives a result of another shape or dtype, raises KernelFailure.
        """
        if operator == "gelu_backward":
            return self.written(kernels.with_backward(eager(formula), function))
        if operator == "gelu":
            forward = kernels.activation(function)
            return self.written(kernels.with_backward(forward, backward) if backward else forward)
        if operator in self.fitted:
            return self.fitted[operator](function)
        return kernels.whole(fused.get(self.operator), function)


def eager(formula: str) -> Activation:
    """Return torch's own activation, or the sigmoid form as frameworks write it."""
    if formula == "sigmoid":
        return lambda x: x * torch.sigmoid(1.702 * x)
    return lambda x: functional.gelu(x, approximate="tanh" if formula == "tanh" else "none")


def _rounded_once(site: Site) -> Site:
    def rounded(*arguments: Tensor) -> Tensor:
        with lifted(arguments) as given:
            return site(*(part.double() for part in given)).to(given[0].dtype)

    return rounded
