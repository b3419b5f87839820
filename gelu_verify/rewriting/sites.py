"""The sites of a rewritten model: what reaches them, and the exact function in their place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx

from gelu_verify.kernels import activity
from gelu_verify.kernels.subject import wait_for
from gelu_verify.rewriting import exact
from reference_kernels.rewriting import Replaced


@dataclass
class Visit:
    """What a site was called with, what it returned, and the cotangent that came back."""

    site: Replaced
    function: Callable[..., Tensor]
    inputs: tuple[Tensor, ...]
    result: Tensor
    dys: list[Tensor] = field(default_factory=list)

    def as_rows(self) -> Visit:
        """Return the visit with at least two dimensions of x, as operators define them."""
        if self.inputs[0].dim() > 1:
            return self
        x, *others = self.inputs
        dys = [dy[None] for dy in self.dys]
        return Visit(self.site, self.function, (x[None], *others), self.result[None], dys)


class Capturing(fx.Interpreter):
    """Run a rewritten model and keep what every site sees."""

    def __init__(self, module: fx.GraphModule, sites: tuple[Replaced, ...]) -> None:
        super().__init__(module)
        self.sites = {site.node: site for site in sites}
        self.visits: list[Visit] = []

    def run_node(self, n: fx.Node) -> Any:
        """Run a node; a site's arguments are copied, as later nodes may change them in place."""
        if n.name not in self.sites:
            return super().run_node(n)
        arguments, _ = self.fetch_args_kwargs_from_env(n)
        inputs = tuple(part.detach().clone() for part in arguments if isinstance(part, Tensor))
        result = super().run_node(n)
        function = n.target
        assert callable(function)
        visit = Visit(self.sites[n.name], function, inputs, result.detach().clone())
        if result.requires_grad:
            result.register_hook(lambda dy: visit.dys.append(dy.detach().clone()))
        self.visits.append(visit)
        return result


class Exactly(fx.Interpreter):
    """Run a rewritten model in float64 with the exact function at every site."""

    def __init__(self, module: fx.GraphModule, sites: tuple[Replaced, ...]) -> None:
        super().__init__(module)
        self.sites = {site.node: site for site in sites}

    def run_node(self, n: fx.Node) -> Any:
        """Run a node, a site by its definition."""
        if n.name not in self.sites:
            return super().run_node(n)
        arguments, _ = self.fetch_args_kwargs_from_env(n)
        return exact.FUNCTIONS[self.sites[n.name].operator](*arguments)


def gradients(visit: Visit) -> tuple[Tensor | None, ...] | None:
    """Return the gradient of each argument at the cotangent; None where none came back."""
    if not visit.dys:
        return None
    leaves = tuple(part.detach().requires_grad_() for part in visit.inputs)
    with activity.of_kernel():
        result = visit.function(*leaves, visit.site.formula)
        parts = torch.autograd.grad(result, leaves, visit.dys[0], allow_unused=True)
        wait_for(result.device)
    return parts
