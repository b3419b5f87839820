"""What a fused kernel computes in, and how rounding errors grow with the length of a sum.

A sum of n terms in an arithmetic of unit roundoff u is off by at most ``c(n)·u·Σ|terms|``:

- always, ``c(n)·u = γ_n = n·u/(1 - n·u)`` (Higham, Accuracy and Stability of Numerical Algorithms,
  2nd ed., 2002, section 3.1), whatever the order of the sum;
- if the rounding errors are independent and of mean zero, with probability at least
  ``1 - 2n·exp(-λ²(1-u)²/2)``, ``c(n) = λ√n`` to first order (Higham and Mary, "A New Approach to
  Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41, 2019, theorems 2.4 and 3.1). λ
  is not chosen: it is what makes all sums of one product hold together but for once in 10^9. Sums
  of one repeated number round the same way every time and do not meet the assumption.

Tensor cores truncate (Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor
cores", PeerJ Computer Science 7:e330, 2021): the products of a block are exact, each is cut at the
last bit of the largest addend of the block, and so is the block's sum. That is one truncation a
product and one a block of at least ``_BLOCK`` products, ``N = n + n/_BLOCK`` in all, each off by up
to 2u of what has been summed. Always ``c = 2N`` then; half of each is drift towards zero, so that
with independent deviations ``c = N + λ√N``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from gelu_verify import formats
from gelu_verify.contracts import Contract
from gelu_verify.formats import Format
from gelu_verify.kernels.spec import Declared

#: Significand bits of the inputs of a product, by name.
_PRODUCT_BITS = {"fp64": 53, "fp32": 24, "tf32": 11, "fp16": 11, "bf16": 8}
#: Products that a tensor core adds at once, at least (TF32 on Ampere; 16-bit formats take more).
_BLOCK = 4
#: Formats that only tensor cores multiply in: a sum of such products may be truncated.
_SHORT_PRODUCTS = ("tf32", "fp16", "bf16")
#: One sum of a product in so many may exceed its probabilistic bound.
_FAILURES = 1e-9

Growth = Literal["probabilistic", "worst"]


@dataclass(frozen=True)
class Arithmetic:
    """The arithmetic that a bound assumes.

    fmt: format of inputs and outputs. unit: unit roundoff of sums and of elementwise work.
    input_unit: relative rounding of a product's inputs, 0 where they are exact.
    truncates: whether sums of products may run on tensor cores. casts: intermediates that may be
    rounded to the format; None for all that the operator names. contract: what the activation
    alone promises, its limit in ULP of the arithmetic.
    """

    fmt: Format
    contract: Contract
    unit: float
    input_unit: float = 0.0
    truncates: bool = False
    casts: tuple[str, ...] | None = None
    growth: Growth = "probabilistic"

    @classmethod
    def of(
        cls,
        fmt: Format,
        contract: Contract,
        device: str = "cpu",
        declared: Declared | None = None,
        growth: Growth = "probabilistic",
    ) -> Arithmetic:
        """Return the arithmetic of a format on a device, with what the kernel declares."""
        declared = declared or Declared()
        own = "fp64" if fmt.bits == 64 else "fp32"
        bits = _PRODUCT_BITS[declared.products] if declared.products else fmt.precision
        casts = declared.casts
        if casts is None and fmt.bits > 16:
            casts = ()
        return cls(
            fmt=fmt,
            contract=contract,
            unit=2.0 ** -_PRODUCT_BITS[declared.accumulate or own],
            input_unit=_input_unit(declared.products, bits) if bits < fmt.precision else 0.0,
            truncates=device.startswith("cuda")
            and (fmt.bits <= 16 or declared.products in _SHORT_PRODUCTS),
            casts=casts,
            growth=growth,
        )

    @property
    def sentence(self) -> str:
        """What is assumed, for people."""
        parts = [f"sums in {self.own.name}{', truncated' if self.truncates else ''}"]
        if self.input_unit:
            parts.append(f"inputs of products off by up to 2^{math.log2(self.input_unit):.0f}")
        if self.casts is None:
            parts.append(f"each named intermediate rounded once to {self.fmt.name}")
        elif self.casts:
            parts.append(f"{', '.join(self.casts)} rounded once to {self.fmt.name}")
        return f"{'; '.join(parts)}; {self.growth} growth; activation holds {self.contract.name}"

    @property
    def own(self) -> Format:
        """The format that elementwise work is done in."""
        names = {2.0**-53: "fp64", 2.0**-24: "fp32", 2.0**-11: "fp16", 2.0**-8: "bf16"}
        return formats.get(names[self.unit])

    def may_cast(self, name: str) -> bool:
        """Tell whether an intermediate result may be rounded to the format."""
        return self.casts is None or name in self.casts

    def growth_of(self, n: int, sums: int, products: bool = False) -> float:
        """Return ``c(n)·u``: the error of a sum of n terms over the sum of their magnitudes.

        n: roundings a term passes through, at most. sums: how many sums must hold together.
        products: whether the terms are products that a tensor core may add.
        """
        worst = self.worst_of(n, products)
        if self.growth == "worst" or n <= 0:
            return worst
        truncated = products and self.truncates
        roundings, u = _roundings(n, truncated), self.unit
        deviations = math.sqrt(2 * math.log(2 * n * max(sums, 1) / _FAILURES)) / (1 - u)
        steps = deviations * math.sqrt(roundings) + (roundings if truncated else 0)
        # exp(s·u + n·u²/(1-u)) - 1, the bound without the first-order simplification.
        likely = math.expm1(min(steps * u + roundings * u * u / (1 - u), 700.0))
        return min(worst, likely)

    def worst_of(self, n: int, products: bool = False) -> float:
        """Return ``c(n)·u`` that always holds, ``γ_n``."""
        truncated = products and self.truncates
        most = _roundings(max(n, 0), truncated) * self.unit * (2 if truncated else 1)
        return most / (1 - most) if most < 0.5 else math.inf


def _roundings(n: int, truncated: bool) -> int:
    return n + math.ceil(n / _BLOCK) if truncated else n


def _input_unit(products: str, bits: int) -> float:
    """Return the relative error of rounding an input: TF32 hardware ignores low bits, up to 2u."""
    return 2.0 ** (1 - bits) if products == "tf32" else 2.0**-bits
