"""``gelu(x) = x·Φ(x)``, and the two formulas that stand for it (see ``reference.oracle``)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gelu_verify.operators.base import beside, nearer

if TYPE_CHECKING:
    import torch

    from gelu_verify.formats import Format
    from gelu_verify.reference.exact import Exact


class Gelu:
    """The activation of one argument."""

    name = "gelu"
    definition = "x·Φ(x)"
    arguments: tuple[str, ...] = ("x",)
    derivative = 0
    intermediate: str | None = None

    def shaped(self, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """Return the inputs: the kernel takes arguments of one shape."""
        return inputs

    def activated(self, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Return x."""
        return inputs[0].double()

    def approximate(self, inputs: tuple[torch.Tensor, ...], formula: str) -> torch.Tensor:
        """Return f(x) in float64."""
        from gelu_verify.reference import fast

        return fast.gelu(inputs[0].double(), formula)

    def exact_at(self, numbers: list[float], formula: str) -> Any:
        """Return f(x) from the oracle."""
        from gelu_verify.reference import oracle

        return oracle.value(formula, numbers[0])

    def exact(self, inputs: tuple[torch.Tensor, ...], formula: str, fmt: Format) -> Exact:
        """Return ``f(x)``: float64 with its bound below fp64, mpmath for fp64."""
        from gelu_verify.reference import fast
        from gelu_verify.reference.exact import FastExact

        if fmt.bits == 64:
            return self.precise(inputs, formula, fmt)
        bound = fast.RELATIVE_ERROR_BOUND[formula, 0] * 2.0**-53
        inward = fast.inward(inputs[0].double(), 0)
        return FastExact(self.approximate(inputs, formula), inward, bound)

    def precise(self, inputs: tuple[torch.Tensor, ...], formula: str, fmt: Format) -> Exact:
        """Return ``f(x)`` from the oracle."""
        from gelu_verify.reference.exact import PreciseExact

        xs = inputs[0].double().tolist()
        values = [value(formula, x) for x in xs]
        # f has the sign of x, and -0 at -0 and -inf.
        return PreciseExact(values, [str(x)[0] == "-" for x in xs], fmt)

    def side_of_tie(self, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Return 1 for 0 < |x| < 2^-60: x/2 + x²·f''(0)/2 lies above x/2."""
        x = inputs[0].double()
        return ((x != 0) & (x.abs() < 2.0**-60)).double()

    def reach(
        self, inputs: tuple[torch.Tensor, ...], formula: str, fmt: Format
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (0, 0): nothing is rounded on the way."""
        import torch

        nothing = torch.zeros_like(inputs[0], dtype=torch.float64)
        return nothing, nothing

    def underflows(self, inputs: tuple[torch.Tensor, ...], smallest: float) -> torch.Tensor:
        """Return where x is below the smallest normal number."""
        return inputs[0].double().abs() < smallest

    def cancellation(self, inputs: tuple[torch.Tensor, ...], formula: str) -> torch.Tensor:
        """Return ``|x|``: Φ = (1 + erf)/2 is off by up to u, and x multiplies that."""
        return inputs[0].double().abs()

    def saturated(
        self, inputs: tuple[torch.Tensor, ...], actual: torch.Tensor, threshold: float
    ) -> torch.Tensor:
        """Return where the output is 0 for ``x <= -threshold`` or x for ``x >= threshold``."""
        x, got = inputs[0].double(), actual.double()
        return ((x <= -threshold) & (got == 0)) | ((x >= threshold) & (got == x))


@lru_cache(maxsize=1 << 16)
def value(formula: str, x: float) -> Any:
    """Return f(x) from the oracle, on the right side of x and x/2, which it never equals.

    Kept, as many products share a factor; +0 and -0 are one key, and f of both is mpmath's one 0.
    """
    import mpmath

    from gelu_verify.reference import oracle

    near = nearer(x)
    exact = mpmath.mpf(x) if near < x else oracle.value(formula, near)
    return _beside_limits(exact, x)


def _beside_limits(exact: Any, x: float) -> Any:
    """Keep the exact value off x, below which it lies, and off x/2, above which it does."""
    import mpmath

    doubled = beside(mpmath.ldexp(exact, 1), x, outward=x > 0)
    return beside(mpmath.ldexp(doubled, -1), x, outward=False)


GELU = Gelu()
