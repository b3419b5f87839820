"""``gelu_backward(dy, x) = dy·GELU'(x)``, with GELU'(x) = Φ(x) + xφ(x) for the erf formula."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gelu_verify.operators.base import beside, nearer, never_zero

if TYPE_CHECKING:
    import torch

    from gelu_verify.formats import Format
    from gelu_verify.reference.exact import Exact


#: The oracle's 200 bits times the 53 of dy, with room for its guard bits.
_PRODUCT_BITS = 400


class GeluBackward:
    """The vector-Jacobian product of the activation."""

    name = "gelu_backward"
    definition = "dy·(Φ(x) + xφ(x))"
    arguments: tuple[str, ...] = ("dy", "x")
    derivative = 1
    intermediate: str | None = None

    def shaped(self, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """Return the inputs: the kernel takes arguments of one shape."""
        return inputs

    def activated(self, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Return x."""
        return inputs[1].double()

    def approximate(self, inputs: tuple[torch.Tensor, ...], formula: str) -> torch.Tensor:
        """Return dy·f'(x) in float64."""
        from gelu_verify.reference import fast

        dy, x = (part.double() for part in inputs)
        # f' has its only zero between two floats.
        return dy * never_zero(fast.derivative(x, formula), x, math.nan)

    def exact_at(self, numbers: list[float], formula: str) -> Any:
        """Return dy·f'(x) from the oracle."""
        from gelu_verify.reference import oracle

        return oracle.gelu_backward(numbers[0], numbers[1], formula)

    def exact(self, inputs: tuple[torch.Tensor, ...], formula: str, fmt: Format) -> Exact:
        """Return ``dy·f'(x)``: float64 with its bound below fp64, mpmath for fp64."""
        from gelu_verify.reference import fast
        from gelu_verify.reference.exact import FastExact

        if fmt.bits == 64:
            return self.precise(inputs, formula, fmt)
        # The product of two float64 numbers is rounded once more.
        bound = (fast.RELATIVE_ERROR_BOUND[formula, 1] + 1) * 2.0**-53
        inward = fast.inward(inputs[1].double(), 1)
        return FastExact(self.approximate(inputs, formula), inward, bound)

    def precise(self, inputs: tuple[torch.Tensor, ...], formula: str, fmt: Format) -> Exact:
        """Return ``dy·f'(x)`` from the oracle."""
        import mpmath

        from gelu_verify.reference.exact import PreciseExact

        values, negative = [], []
        for dy, x in zip(*(part.double().tolist() for part in inputs), strict=True):
            slope = _slope(formula, nearer(x))
            with mpmath.workprec(_PRODUCT_BITS):
                values.append(_beside_limits(slope * dy, dy, x))
            # f' is negative left of its zero, up to -0 at -inf.
            below = x == -math.inf or slope < 0
            negative.append((math.copysign(1.0, dy) < 0) != below)
        return PreciseExact(values, negative, fmt)

    def side_of_tie(self, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Return the sign of dy·x for |x| < 2^-60: dy/2 + dy·x·f''(0) lies on that side of dy/2."""
        dy, x = (part.double() for part in inputs)
        return (dy.sign() * x.sign()) * (x.abs() < 2.0**-60)

    def reach(
        self, inputs: tuple[torch.Tensor, ...], formula: str, fmt: Format
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (0, 0): a backward kernel is one operation."""
        import torch

        nothing = torch.zeros_like(inputs[0], dtype=torch.float64)
        return nothing, nothing

    def underflows(self, inputs: tuple[torch.Tensor, ...], smallest: float) -> torch.Tensor:
        """Return where dy is below the smallest normal number: dy·1.1 need not be."""
        return inputs[0].double().abs() < smallest

    def cancellation(self, inputs: tuple[torch.Tensor, ...], formula: str) -> torch.Tensor:
        """Return ``|dy|·(1 + |x|·s(x))``.

        The first term is the error of Φ, as in the forward direction. ``s`` is what the second
        term's factor amplifies: for erf ``φ(x)(3 + x²/2)`` (three roundings and the rounded
        argument of exp); for tanh ``u'(x)``, because ``1 - tanh²`` is off by u; for sigmoid
        ``2·1.702``, because ``1 - σ`` with ``σ = 1/(1 + e^-y)`` is off by 2u. The last two end
        where tanh and σ are 1 in fp64 as well, with a margin for their own error: u = 20, y = 39.
        """
        dy, x = (part.double() for part in inputs)
        size = x.abs()
        if formula == "erf":
            slope = (-0.5 * size * size).exp() / math.sqrt(2 * math.pi) * (3 + 0.5 * size * size)
        elif formula == "tanh":
            c = math.sqrt(2 / math.pi)
            u = c * (size + 0.044715 * size**3)
            slope = (u < 20.0).double() * c * (1 + 3 * 0.044715 * size * size)
        else:
            slope = (1.702 * size < 39.0).double() * (2 * 1.702)
        return dy.abs() * (1 + (size * slope).nan_to_num(nan=0.0))

    def saturated(
        self, inputs: tuple[torch.Tensor, ...], actual: torch.Tensor, threshold: float
    ) -> torch.Tensor:
        """Return where the output is 0 for ``x <= -threshold`` or dy for ``x >= threshold``."""
        dy, x = (part.double() for part in inputs)
        got = actual.double()
        return ((x <= -threshold) & (got == 0)) | ((x >= threshold) & (got == dy))


@lru_cache(maxsize=1 << 16)
def _slope(formula: str, x: float) -> Any:
    """Return f'(x) from the oracle, kept, as many products share it."""
    from gelu_verify.reference import oracle

    return oracle.value(formula, x, derivative=1)


def _beside_limits(exact: Any, dy: float, x: float) -> Any:
    """Keep the exact value off dy, beyond which it lies, and off dy/2, where f' is 1/2 at 0."""
    import mpmath

    if x == 0.0 or not math.isfinite(x):
        return exact
    doubled = beside(mpmath.ldexp(exact, 1), dy, outward=x > 0)
    return beside(mpmath.ldexp(doubled, -1), dy, outward=True)


GELU_BACKWARD = GeluBackward()
