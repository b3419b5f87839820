"""Gradient sums: in what a backward adds, told as the fingerprint tells it of the forward.

With every pre-activation at 64, where the slope of every formula is exactly 1, the gradient of the
bias is the sum of dy over the rows, and those of x and weight are products of matrices with dy. The
bound of a gradient in 16 bits allows dy·f' to be rounded to the format term by term, and a sum that
is rounded as it grows can hide in that; exact sums show it.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused import arithmetic_probes
from gelu_verify.checks.fused.arithmetic_probes import Multiply, SumBits
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.checks.fused.differentiation import NO_GRADIENT, gradients, leaves
from gelu_verify.checks.fused.fingerprint import MEANT
from gelu_verify.kernels.subject import KernelFailure, is_refusal
from gelu_verify.operators.fused import Multiplies
from gelu_verify.records import FindingStatus

#: Length of a sum, and the bits it keeps; None where not even a few are kept.
Counted = list[tuple[int, SumBits | None]]

_CHECK = "gradient_sums"
#: Lengths of the sums, no multiples of a tile.
_LENGTHS = (33, 513)
#: f'(64) is 1 to more than 53 bits in every formula.
_SATURATED = 64.0
#: Terms of a sum over rows reach this, which fp16 does not hold.
_LARGEST_TERM = 2.0**30


class _NoGradient(Exception):
    """The kernel offers no gradient for an argument; left by ``run`` alone."""


def run(case: FusedCase) -> Outcome:
    """Count the bits that the sums of every gradient keep, and judge them by what is declared."""
    sums = dict(_sums(case))
    if not sums:
        message = f"{case.operator.name} has no gradient that is one sum of dy in this format"
        return Outcome([case.finding(_CHECK, FindingStatus.SKIPPED, message)])
    fmt, declared = case.subject.fmt, case.job.spec.arithmetic
    wanted = declared.accumulate or ("fp64" if fmt.bits == 64 else "fp32")
    try:
        found = {
            name: [(k, arithmetic_probes.sum_bits(multiply, fmt, k)) for k in _LENGTHS]
            for name, multiply in sums.items()
        }
    except _NoGradient:
        return Outcome([case.finding(_CHECK, FindingStatus.SKIPPED, NO_GRADIENT)])
    except KernelFailure as error:
        if not is_refusal(error):
            raise
        return Outcome([case.finding(_CHECK, FindingStatus.SKIPPED, f"refused: {error}")])
    return Outcome([case.finding(_CHECK, *_verdict(found, wanted))])


def _verdict(found: dict[str, Counted], wanted: str) -> tuple[FindingStatus, str]:
    faults = [
        f"{name}: a sum of {k} keeps {bits.least if bits else 'not even a few'} bits, "
        f"{wanted} is due"
        for name, counted in found.items()
        for k, bits in counted
        if bits is None or bits.least < MEANT[wanted][0]
    ]
    if faults:
        return FindingStatus.FAILED, "; ".join(faults)
    shown = (f"{name} {min(b.least for _, b in one if b)}" for name, one in found.items())
    return FindingStatus.PASSED, f"bits that sums keep: {', '.join(shown)}"


def _sums(case: FusedCase) -> Iterator[tuple[str, Multiply]]:
    """Yield the gradients that are sums of dy, by name, as products of matrices."""
    operator = case.operator
    if not (operator.has_formula and "bias" in operator.arguments):
        return
    if case.subject.fmt.largest > _LARGEST_TERM:
        yield (
            "dbias",
            lambda left, right: _over_rows(case, left * right[0]).expand(right.shape[0], -1).t(),
        )
    if isinstance(operator, Multiplies):
        # dweight = dyᵀ·x with a weight of 0, dx = dy·weight with an x of 0.
        yield "dweight", lambda left, right: _through(case, "weight", left.t(), x=right.t())
        yield "dx", lambda left, right: _through(case, "x", left, weight=right.t())


def _over_rows(case: FusedCase, terms: Tensor) -> Tensor:
    """Return the gradient of the bias for dy = termsᵀ, float64 (M,) for terms (M, K)."""
    return _through(case, "bias", terms.t())


def _through(case: FusedCase, name: str, dy: Tensor, **given: Tensor) -> Tensor:
    """Return a gradient for dy (rows, N), all arguments but those given 0, and the bias 64."""
    (m, n), operator, s = dy.shape, case.operator, case.subject
    k = next((part.shape[-1] for part in given.values()), 1)
    shapes = dict(zip(operator.arguments, operator.shapes({"m": m, "k": k, "n": n}), strict=True))
    parts = {key: torch.zeros(shape, dtype=torch.float64) for key, shape in shapes.items()}
    parts["bias"] = parts["bias"] + _SATURATED
    parts |= given
    arguments = leaves(tuple(parts[key].to(s.dtype).to(s.device) for key in operator.arguments))
    result = case.call(arguments)
    found = gradients(result, arguments, dy.to(s.dtype).to(s.device).contiguous())
    wanted = None if found is None else found[operator.arguments.index(name)]
    if wanted is None:
        raise _NoGradient
    return wanted.detach().cpu().double()
