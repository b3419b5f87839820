"""From where on an engine hands elements over, for the contracts that are judged."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gelu_verify import contracts
from gelu_verify.allowances import ZERO_BELOW
from gelu_verify.contracts import BUILT_IN, AllowanceKind, Contract
from gelu_verify.exhaustive.measuring import OPEN, Pass
from gelu_verify.exhaustive.spans import FP32

_MARGIN = 1e-7
_GUARD, _CANCELLATION, _ = contracts.get("approximation").allowances


@dataclass(frozen=True)
class Limits:
    """From where on an engine selects elements, which are then judged by themselves.

    select_from: error; infinite where the sets of the figures say all. back_from, back_slack: a
    step back beyond the first (ULP) and beyond the second times ``|x|`` is selected. open_width:
    half the width (ULP) around 1/2, 1 and 4 ULP in which the reference leaves a verdict open.
    """

    select_from: float
    back_from: float
    back_slack: float
    open_width: float = OPEN

    def numbers(self, formula: str) -> list[float]:
        """Return them as engines take them, with threshold, unit and far left of the sets."""
        far = [ZERO_BELOW[name][0] for name in (formula, "tanh")]
        return [
            *(self.select_from, self.back_from, self.back_slack),
            *(_GUARD.threshold, FP32.arithmetic_unit * _CANCELLATION.factor, *far),
            self.open_width,
        ]


def limits_of(general: Pass) -> Limits:
    """Return from where on an engine selects, for the contracts that are judged.

    A step back is within the contract of both neighbours up to twice what it permits, of which the
    limit and the slack of cancellation are parts. A little less, because the judge has the say.
    """
    contract = general.contract
    judged = [c for c in general.contracts() if c not in BUILT_IN and not is_settled(c)]
    cancellation = contract.allowance(AllowanceKind.CANCELLATION)
    unit = FP32.arithmetic_unit * cancellation.factor if cancellation else 0.0
    return Limits(
        min((c.max_error_ulp - OPEN for c in judged), default=math.inf),
        back_from(contract) * (1 - _MARGIN),
        2 * unit * (1 - _MARGIN),
    )


def back_from(contract: Contract) -> float:
    """Return the step in ULP that two neighbours within the limit cannot exceed."""
    return 2.0 * contract.max_error_ulp if contract.max_error_ulp > 0.5 else 0.0


def is_settled(contract: Contract) -> bool:
    """Tell whether the counts beyond 1/2 or 1 ULP say which errors break a contract."""
    return Pass.is_plain(contract) and (
        contract.max_error_ulp == 0.5 or abs(contract.max_error_ulp - 1.0) < OPEN / 2
    )
