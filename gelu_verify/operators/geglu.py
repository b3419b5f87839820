"""``geglu(gate, up) = f(gate)·up`` (Shazeer, "GLU Variants Improve Transformer", 2020)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gelu_verify.operators import gelu
from gelu_verify.operators.base import never_zero

if TYPE_CHECKING:
    import torch

    from gelu_verify.formats import Format
    from gelu_verify.reference.exact import Exact

#: More than 200 bits of the oracle times 53 of ``up``.
_PRODUCT_BITS = 400
#: From here on f(gate) is gate in float64 for all formulas (sigmoid: 1 - σ(1.702·40) < 2^-98).
_IDENTITY_FROM = 40.0


class Geglu:
    """The activation of one half of a projection, times the other half."""

    name = "geglu"
    definition = "f(gate)·up"
    arguments: tuple[str, ...] = ("gate", "up")
    derivative = 0
    intermediate: str | None = "f(gate)"

    def shaped(self, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """Return the inputs: the kernel takes arguments of one shape."""
        return inputs

    def activated(self, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Return the gate."""
        return inputs[0].double()

    def approximate(self, inputs: tuple[torch.Tensor, ...], formula: str) -> torch.Tensor:
        """Return f(gate)·up in float64."""
        from gelu_verify.reference import fast

        gate, up = (part.double() for part in inputs)
        return never_zero(fast.gelu(gate, formula), gate, 0.0) * up

    def exact_at(self, numbers: list[float], formula: str) -> Any:
        """Return f(gate)·up from the oracle."""
        gate, up = numbers
        return _product(gelu.value(formula, gate), up)

    def exact(self, inputs: tuple[torch.Tensor, ...], formula: str, fmt: Format) -> Exact:
        """Return ``f(gate)·up``: float64 with its bound below fp64, mpmath for fp64."""
        from gelu_verify.reference import fast
        from gelu_verify.reference.exact import FastExact

        if fmt.bits == 64:
            return self.precise(inputs, formula, fmt)
        # The product of two float64 numbers is rounded once more.
        bound = (fast.RELATIVE_ERROR_BOUND[formula, 0] + 1) * 2.0**-53
        inward = fast.inward(inputs[0].double(), 0)
        return FastExact(self.approximate(inputs, formula), inward, bound)

    def precise(self, inputs: tuple[torch.Tensor, ...], formula: str, fmt: Format) -> Exact:
        """Return ``f(gate)·up`` from the oracle."""
        from gelu_verify.reference.exact import PreciseExact

        values, negative = [], []
        for gate, up in zip(*(part.double().tolist() for part in inputs), strict=True):
            values.append(_product(gelu.value(formula, gate), up))
            negative.append((math.copysign(1.0, gate) < 0) != (math.copysign(1.0, up) < 0))
        return PreciseExact(values, negative, fmt)

    def side_of_tie(self, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Return the sign of ``up`` for |gate| < 2^-60, where f(gate) lies above gate/2, and its
        opposite from 40 on, where f(gate) lies below gate; both products are exact in float64.
        """
        gate, up = (part.double() for part in inputs)
        near_zero = (gate != 0) & (gate.abs() < 2.0**-60)
        return up.sign() * (near_zero.double() - (gate >= _IDENTITY_FROM).double())

    def reach(
        self, inputs: tuple[torch.Tensor, ...], formula: str, fmt: Format
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ``|up|·max(u·|f|, half the smallest subnormal)`` twice: f(gate) rounded."""
        import torch

        from gelu_verify.reference import fast

        gate, up = (part.double() for part in inputs)
        relative = fast.gelu(gate, formula).abs() * up.abs() * fmt.unit_roundoff
        # Half the smallest subnormal of fp64 is 0 in float64, half of the product is not.
        spread = torch.maximum(relative, up.abs() * fmt.smallest_subnormal / 2)
        return spread, spread

    def underflows(self, inputs: tuple[torch.Tensor, ...], smallest: float) -> torch.Tensor:
        """Return where either argument is below the smallest normal number."""
        gate, up = (part.double().abs() for part in inputs)
        return (gate < smallest) | (up < smallest)

    def cancellation(self, inputs: tuple[torch.Tensor, ...], formula: str) -> torch.Tensor:
        """Return ``|gate·up|``: Φ is off by up to u, and both factors multiply that."""
        gate, up = (part.double() for part in inputs)
        return (gate * up).abs()

    def saturated(
        self, inputs: tuple[torch.Tensor, ...], actual: torch.Tensor, threshold: float
    ) -> torch.Tensor:
        """Return where the output is 0 for ``gate <= -threshold`` or RN(gate·up) for ``gate >=
        threshold``.
        """
        from gelu_verify.formats import tensors

        gate, up = (part.double() for part in inputs)
        got, full = actual.double(), gate * up
        rounded = tensors.round_float64(full, tensors.format_of(actual.dtype))
        return ((gate <= -threshold) & (got == 0)) | (
            (gate >= threshold) & (got == rounded.double())
        )


def _product(exact: Any, up: float) -> Any:
    """Return f(gate)·up with all its bits; a zero times an infinity is NaN."""
    import mpmath

    with mpmath.workprec(_PRODUCT_BITS):
        return exact * up


GEGLU = Geglu()
