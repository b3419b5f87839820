"""What a kernel promises: limits, named allowances, and a policy for special values.

A contract is a record without code; :mod:`gelu_verify.judge` applies it to a batch. The built-in
ones are ordered, strictest first, and each permits all that the one before it permits.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from gelu_verify.errors import unknown_name


class AllowanceKind(StrEnum):
    """Why an element may miss the ULP limit."""

    CANCELLATION = "cancellation"
    GUARD = "guard"
    APPROXIMATION = "approximation"


class MinusInfinity(StrEnum):
    """What GELU(-inf) may be. The limit is -0; ``-inf · 0`` is NaN in the textbook form."""

    ZERO = "zero"
    NAN = "nan"
    ANY = "any"


class ZeroSign(StrEnum):
    """Whether a result of zero must carry the sign of the exact value."""

    STRICT = "strict"
    ANY = "any"


class Subnormals(StrEnum):
    """Which subnormal numbers may be replaced by zero."""

    IEEE = "ieee"
    FLUSH_INPUTS = "flush_inputs"
    FLUSH_OUTPUTS = "flush_outputs"
    FLUSH = "flush"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Allowance(_Record):
    """One named reason to miss the ULP limit; which inputs used it is always reported."""

    kind: AllowanceKind
    reason: str = Field(description="why a kernel may need it, in one sentence")
    factor: float = Field(1.0, gt=0, description="multiple of the derived slack (cancellation)")
    threshold: float = Field(6.0, gt=0, description="|x| from which the guard acts (guard)")
    formula: str = Field("tanh", description="formula that may stand in (approximation)")


class Contract(_Record):
    """A promise about every finite input, and about the special ones.

    An element holds if ``|error| <= max_error_ulp``, or if one of the allowances covers it.
    """

    name: str
    summary: str = Field(description="one line for people")
    max_error_ulp: Annotated[float, Field(gt=0, description="largest error, ULP of the format")]
    allowances: tuple[Allowance, ...] = ()
    minus_infinity: MinusInfinity = MinusInfinity.ZERO
    zero_sign: ZeroSign = ZeroSign.STRICT
    subnormals: Subnormals = Subnormals.IEEE
    rounded_intermediate: bool = Field(
        True,
        description="whether x + bias, or f(gate), may be rounded to the format once on the way",
    )
    derivative_at_infinity: bool = Field(
        False, description="whether the derivative at ±inf is judged (must be 1 and 0) or reported"
    )

    def allowance(self, kind: AllowanceKind) -> Allowance | None:
        """Return the allowance of a kind, if the contract has it."""
        return next((a for a in self.allowances if a.kind is kind), None)


_GUARD = Allowance(
    kind=AllowanceKind.GUARD,
    reason="a saturation guard returns 0 below -6 and x above 6",
    threshold=6.0,
)
_CANCELLATION = Allowance(
    kind=AllowanceKind.CANCELLATION,
    reason="1 + erf (1 + tanh) is rounded at the size of 1, so |x|·u of the left tail is lost; "
    "erfc (exp) of a rounded argument is off by (x² + 1)·2u of the result",
)
_APPROXIMATION = Allowance(
    kind=AllowanceKind.APPROXIMATION,
    reason="the tanh form stands in for the declared formula",
    formula="tanh",
)

BUILT_IN: tuple[Contract, ...] = (
    Contract(
        name="correctly_rounded",
        summary="every result is the exact value rounded to nearest",
        max_error_ulp=0.5,
        rounded_intermediate=False,
        derivative_at_infinity=True,
    ),
    Contract(
        name="faithful",
        summary="every result is one of the two neighbours of the exact value (error below 1 ULP)",
        max_error_ulp=math.nextafter(1.0, 0.0),
        rounded_intermediate=False,
    ),
    Contract(
        name="tail_accurate",
        summary="at most 4 ULP at every finite input, the deep tail included",
        max_error_ulp=4.0,
    ),
    Contract(
        name="saturating",
        summary="at most 4 ULP, but exactly 0 below -6 and exactly x above 6 are allowed",
        max_error_ulp=4.0,
        allowances=(_GUARD,),
        zero_sign=ZeroSign.ANY,
    ),
    Contract(
        name="cancelling",
        summary="at most 4 ULP or |x|·u: what 0.5x(1+erf) can do",
        max_error_ulp=4.0,
        allowances=(_GUARD, _CANCELLATION),
        minus_infinity=MinusInfinity.ANY,
        zero_sign=ZeroSign.ANY,
    ),
    Contract(
        name="approximation",
        summary="as cancelling, for the declared formula or the tanh form in its place",
        max_error_ulp=4.0,
        allowances=(_GUARD, _CANCELLATION, _APPROXIMATION),
        minus_infinity=MinusInfinity.ANY,
        zero_sign=ZeroSign.ANY,
    ),
)
DEFAULT = "cancelling"


def beside_built_in(contract: Contract) -> tuple[Contract, ...]:
    """Return the built-in contracts and ``contract``, once each: all that a sweep judges by."""
    return BUILT_IN if contract in BUILT_IN else (*BUILT_IN, contract)


def get(name: str) -> Contract:
    """Return the built-in contract called ``name``; an unknown one is a usage error."""
    for contract in BUILT_IN:
        if contract.name == name:
            return contract
    raise unknown_name("contract", name, (c.name for c in BUILT_IN))
