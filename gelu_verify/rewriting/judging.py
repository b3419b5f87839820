"""A site's result and gradients over their derived bounds."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from gelu_verify.bounds import Arithmetic
from gelu_verify.checks.fused.ratios import Ratios, judged
from gelu_verify.contracts import Contract
from gelu_verify.formats import Format
from gelu_verify.operators import fused
from gelu_verify.rewriting.sites import Visit, gradients


@dataclass
class Judged:
    """Ratios over all sites of a format: of the results, and of the gradients by argument.

    missing: arguments that no gradient reached, a sentence each.
    """

    results: Ratios = field(default_factory=Ratios)
    gradients: dict[str, Ratios] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def judge(visits: list[Visit], fmt: Format, contract: Contract, arithmetic: Arithmetic) -> Judged:
    """Judge every visit, a case each."""
    found = Judged()
    for visit in (each.as_rows() for each in visits):
        found.results.add(_result(visit, fmt, contract, arithmetic))
        parts = gradients(visit)
        if parts is None:
            found.missing.append(f"{visit.site}: no cotangent came back")
            continue
        _gradients(found, visit, parts, fmt, contract, arithmetic)
    return found


def _result(visit: Visit, fmt: Format, contract: Contract, arithmetic: Arithmetic) -> Ratios:
    operator, formula = fused.get(visit.site.operator), visit.site.formula
    exact = operator.forward(visit.inputs, formula, arithmetic)
    rival = operator.forward(visit.inputs, "erf" if formula == "sigmoid" else "sigmoid", arithmetic)

    def precise(index: tuple[int, ...]) -> object:
        return operator.precise(visit.inputs, formula, index)

    return judged(visit.result, exact, fmt, contract, str(visit.site), precise, rival.value)


def _gradients(
    found: Judged,
    visit: Visit,
    parts: tuple[Tensor | None, ...],
    fmt: Format,
    contract: Contract,
    arithmetic: Arithmetic,
) -> None:
    operator = fused.get(visit.site.operator)
    exact = operator.backward(visit.dys[0], visit.inputs, visit.site.formula, arithmetic)
    for name, part, right in zip(operator.arguments, parts, exact, strict=True):
        if part is None:
            found.missing.append(f"{visit.site}: no gradient reaches {name}")
            continue
        ratios = judged(part, right, fmt, contract, str(visit.site), kinds=False)
        found.gradients.setdefault(name, Ratios()).add(ratios)
