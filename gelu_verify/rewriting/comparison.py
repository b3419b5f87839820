"""A whole model against another: other bits, distances, and whether two graphs are one function."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from gelu_verify.errors import UsageError
from gelu_verify.formats import tensors
from gelu_verify.report.numbers import figure
from gelu_verify.rewriting.evaluation import Evaluation, distance, evaluate, widened
from gelu_verify.rewriting.sites import Exactly
from reference_kernels.rewriting import Replaced

#: Two float64 graphs of one function differ by roundings of 2^-53, grown by the model's condition;
#: a wrong wire, or another formula (4.7e-4), by far more. Between them lies half of the digits.
_SAME = 2.0**-24
#: What a deviation of a constant may become on its way to a result.
_GROWN = 64.0


@dataclass(frozen=True)
class Truth:
    """The original in float64, and the rewritten graph with the exact function at its sites."""

    original: Evaluation
    rewritten: Evaluation

    def unlike(self, sites: tuple[Replaced, ...]) -> list[str]:
        """Return what the rewritten graph computes otherwise, a sentence each."""
        limit = _SAME + _GROWN * max((site.deviation for site in sites), default=0.0)
        found = []
        for name, right in self.original.all.items():
            off = distance(self.rewritten.all[name], right)
            if not (off <= limit):
                found.append(
                    f"{name} of the rewritten graph is another function: in float64, with exact "
                    f"sites, it is off by {figure(off)} of its norm, more than {limit:.2g}"
                )
        return found


def truth(
    model: nn.Module, rewritten: fx.GraphModule, sites: tuple[Replaced, ...], inputs: Any, seed: int
) -> Truth:
    """Evaluate both in float64 (the original's own GELU, in float64, is exact to 1e-16 of |x|)."""
    wide, other = copy.deepcopy(model).double(), copy.deepcopy(rewritten).double()
    given = widened(inputs)
    original = evaluate(wide, dict(wide.named_parameters()), given, seed)
    run = Exactly(other, sites).run
    return Truth(original, evaluate(run, parameters(wide, other), given, seed))


def parameters(model: nn.Module, rewritten: nn.Module) -> dict[str, Tensor]:
    """Return the rewritten model's parameters under the original's names.

    One that the graph does not have is not used: the original's stands for it, gradient 0.
    """
    own = dict(rewritten.named_parameters())
    return {name: own.get(name, part) for name, part in model.named_parameters()}


def require_deterministic(first: Evaluation, second: Evaluation) -> None:
    """Raise a usage error unless two evaluations of the original have the same results."""
    for name, part in first.results.items():
        if not torch.equal(part.nan_to_num(), second.results[name].nan_to_num()):
            raise UsageError(
                f"model: got another {name} in a second run, expected a function of its inputs. "
                "Call model.eval(), or take the dropout out."
            )


def bits(got: Evaluation, original: Evaluation) -> str:
    """Return how many elements of the results and gradients have other bits, in a sentence."""
    parts = (("results", "results"), ("gradients", "gradients"))
    return "; ".join(
        f"{title}: {_differing(getattr(got, name), getattr(original, name))}"
        for name, title in parts
        if getattr(original, name)
    )


def _differing(got: dict[str, Tensor], original: dict[str, Tensor]) -> str:
    steps = torch.cat([_steps(got[name], right) for name, right in original.items()])
    apart = steps[steps != 0]
    text = f"{apart.numel():,} of {steps.numel():,} elements have other bits"
    if not apart.numel():
        return text
    return f"{text}, half of these by at most {int(apart.median()):,} steps"


def _steps(got: Tensor, right: Tensor) -> Tensor:
    fmt = tensors.format_of(right.dtype)
    return (tensors.ordinals(got, fmt) - tensors.ordinals(right, fmt)).abs().flatten().cpu()


def errors(got: Evaluation, original: Evaluation, right: Evaluation) -> str:
    """Return the largest distances of both from the truth, of results and gradients."""
    texts = []
    for title in ("results", "gradients"):
        exact: dict[str, Tensor] = getattr(right, title)
        if not exact:
            continue
        found = {
            which: max((_or_infinite(distance(part[name], exact[name])), name) for name in exact)
            for which, part in (("rewritten", got.all), ("original", original.all))
        }
        shown = ", ".join(f"{w} {figure(off)} ({name})" for w, (off, name) in found.items())
        texts.append(f"{title} off by at most, of their norm: {shown}")
    return "; ".join(texts)


def _or_infinite(off: float) -> float:
    """Return a distance that NaN does not drop out of a maximum by."""
    return math.inf if math.isnan(off) else off
