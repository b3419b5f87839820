"""A site's result and gradients over their derived bounds."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from gelu_verify.bounds import Arithmetic
from gelu_verify.checks.fused.ratios import Ratios, judged, judged_result
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


def judge(visits: list[Visit], arithmetic: Arithmetic) -> Judged:
    """Judge every visit, a case each, by the format and the contract of the arithmetic."""
    found = Judged()
    for visit in (each.as_rows() for each in visits):
        site, operator = visit.site, fused.get(visit.site.operator)
        result = visit.result
        found.results.add(
            judged_result(operator, site.formula, visit.inputs, result, arithmetic, str(site))
        )
        parts = gradients(visit)
        if parts is None:
            found.missing.append(f"{visit.site}: no cotangent came back")
            continue
        _gradients(found, visit, parts, arithmetic)
    return found


def _gradients(
    found: Judged,
    visit: Visit,
    parts: tuple[Tensor | None, ...],
    arithmetic: Arithmetic,
) -> None:
    operator = fused.get(visit.site.operator)
    exact = operator.backward(visit.dys[0], visit.inputs, visit.site.formula, arithmetic)
    for name, part, right in zip(operator.arguments, parts, exact, strict=True):
        if part is None:
            found.missing.append(f"{visit.site}: no gradient reaches {name}")
            continue
        fmt, contract = arithmetic.fmt, arithmetic.contract
        ratios = judged(part, right, fmt, contract, str(visit.site), kinds=False)
        found.gradients.setdefault(name, Ratios()).add(ratios)
