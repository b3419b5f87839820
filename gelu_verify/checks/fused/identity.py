"""Identity: the activation of a fused kernel alone, judged by the checks of elementwise kernels.

With weight = I and bias = 0 every sum has one term that is not zero, so the pre-activation is x
itself, in any arithmetic that holds x. What a sum loses is not judged: +0 + -0 is +0, and
inf·0 is NaN, so only finite x are tried and the sign of a zero is free.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from gelu_verify import formats, operators
from gelu_verify.checks import accuracy, formula, invariants, saturation, special_values
from gelu_verify.checks.case import Case, Outcome
from gelu_verify.checks.fused import arithmetic_probes
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.contracts import ZeroSign
from gelu_verify.formats import Format, tensors
from gelu_verify.inputs import hard_cases, sweep
from gelu_verify.inputs.special import special_bits
from gelu_verify.job import reproduce
from gelu_verify.kernels.subject import KernelFailure, Subject, is_refusal
from gelu_verify.operators.fused import Multiplies
from gelu_verify.records import Finding, FindingStatus

_NAME = "identity"
#: Length of the sums that x passes through, as in most calls here.
_WIDTH = 256
_FEWEST_BITS = 7
_CHECKS = {
    "accuracy": accuracy.run,
    "formula": formula.run,
    "special_values": special_values.run,
    "saturation": saturation.run,
    "invariants": invariants.run,
}


@dataclass
class _Activation(Subject):
    """The activation of a fused kernel, called through its identity arguments."""

    fused: FusedCase = field(kw_only=True)

    def apply(self, *arguments: Tensor) -> Tensor:
        """Return f(x), of the shape of x."""
        (x,) = arguments
        inputs = self.fused.operator.identity(x.reshape(-1))
        assert inputs is not None
        result = self.fused.call(inputs)
        self.simulated = self.fused.subject.simulated
        return result.reshape(-1)[: x.numel()].reshape(x.shape)


def run(case: FusedCase) -> Outcome:
    """Run the elementwise checks on f(x) over every finite x, in fp32 and fp64 over a sweep."""
    if case.operator.name in operators.OPERATORS:
        return Outcome()  # the elementwise checks have judged it on both arguments
    one = torch.ones(1, dtype=case.subject.dtype, device=case.subject.device)
    if not case.operator.has_formula or case.operator.identity(one) is None:
        message = f"no arguments make {case.operator.name} an activation alone"
        return Outcome([case.finding(_NAME, FindingStatus.SKIPPED, message)])
    outcome = Outcome()
    try:
        activation = _elementwise(case)
    except KernelFailure as error:
        if not is_refusal(error):
            raise
        return Outcome([case.finding(_NAME, FindingStatus.SKIPPED, f"refused: {error}")])
    for name, check in _CHECKS.items():
        try:
            found = check(_specials(activation) if name == "special_values" else activation)
        except KernelFailure as error:
            if not is_refusal(error):
                raise
            message = f"{name.replace('_', ' ')}: refused: {error}"
            outcome.findings.append(case.finding(_NAME, FindingStatus.NOTED, message))
            continue
        outcome.fields |= found.fields
        if name != "saturation":  # it only reports, and its record says it all
            outcome.findings += [_renamed(case, name, finding) for finding in found.findings]
    message = "not judged through a sum: the sign of zero, infinities, NaN"
    if activation.input_bits:
        message += f"; only inputs of {activation.input_bits} bits, which is what products keep"
    outcome.findings.append(case.finding(_NAME, FindingStatus.NOTED, message))
    return outcome


def _elementwise(case: FusedCase) -> Case:
    """Return the case of an elementwise kernel that the activation is."""
    s = case.subject
    contract = case.contract.model_copy(update={"zero_sign": ZeroSign.ANY})
    job = case.job.model_copy(update={"operator": "gelu", "contract": contract})
    operator = operators.get("gelu")
    activation = _Activation(s.name, s.formula, s.fmt, s.device, s.function, operator, fused=case)
    bits, reach = _kept(case)
    return Case(job, activation, _finite(s.fmt, case.job.seed, bits, reach), bits)


def _specials(activation: Case) -> Case:
    """Return the case on the special inputs alone that the sweep has."""
    fmt = activation.subject.fmt
    swept = tensors.to_bits(activation.sweep.x, fmt)
    values = tensors.from_patterns(special_bits(fmt), fmt)
    kept = torch.isin(tensors.to_bits(values, fmt), swept).tolist()
    patterns = tuple((p,) for p, use in zip(special_bits(fmt), kept, strict=True) if use)
    job = activation.job.model_copy(update={"replay": patterns})
    return Case(job, activation.subject, activation.sweep)


def _kept(case: FusedCase) -> tuple[int | None, bool]:
    """Return how many bits of x reach the activation, None if all; and whether 2^20 does.

    Counted, not taken from what is declared: that products are narrow is the fingerprint's matter,
    and must not hide what the activation does.
    """
    operator, fmt = case.operator, case.subject.fmt
    if not isinstance(operator, Multiplies):
        return None, True
    multiply = arithmetic_probes.through(case, operator)
    bits = arithmetic_probes.input_bits(multiply, fmt, _WIDTH)
    if bits < _FEWEST_BITS:
        return None, True  # no arithmetic is that narrow: the activation itself is wrong
    far = arithmetic_probes.reaches_far(multiply, fmt, _WIDTH)
    return (bits if bits < fmt.precision else None), far


def _finite(fmt: Format, seed: int, input_bits: int | None, far: bool) -> sweep.Sweep:
    """Return every finite x of a 16-bit format, else the quick sweep, as they reach the activation.

    far: whether x beyond what fp16 holds do. The quick sweep is dense enough here: routes and lanes
    are the elementwise kernels' matter.
    """
    hard = hard_cases.patterns("gelu", fmt)
    full = sweep.build(fmt, ("x",), sweep.Depth.QUICK, seed, hard)
    x = full.x[torch.isfinite(full.x)]
    if input_bits:
        # Rounding keeps the order; of neighbours that have become one, one is enough.
        x = _rounded(x, input_bits)
        bits = tensors.to_bits(x, fmt)
        new = torch.cat([bits[1:] != bits[:-1], bits.new_ones(1, dtype=torch.bool)])
        # Among subnormals a narrow format holds fewer bits.
        normal = (x == 0) | (x.abs() >= fmt.smallest_normal)
        x = x[new & normal & torch.isfinite(x)]
    if not far:
        x = x[_within_fp16(x)]
    name = "every finite value" if full.exhaustive and far else full.name
    return sweep.Sweep(f"{name}, identity", fmt, (x,), exhaustive=False, seed=seed)


def _within_fp16(x: Tensor) -> Tensor:
    """Return which x are zero or in the range of fp16's normal numbers."""
    fp16, size = formats.get("fp16"), x.double().abs()
    return (size == 0) | ((size >= fp16.smallest_normal) & (size <= fp16.largest))


def _rounded(x: Tensor, bits: int) -> Tensor:
    """Return x rounded to so many significant bits, of which the format holds more."""
    mantissa, exponent = torch.frexp(x.double())
    return torch.ldexp((mantissa * 2.0**bits).round(), exponent - bits).to(x.dtype)


def _renamed(case: FusedCase, check: str, finding: Finding) -> Finding:
    """Return a finding of an elementwise check as one of this check.

    Its input stays; the command runs the fused kernel, which takes no single x.
    """
    return finding.model_copy(
        update={
            "check": _NAME,
            "message": f"{check.replace('_', ' ')}: {finding.message}",
            "reproduce": reproduce(case.job) if finding.reproduce else None,
        }
    )
