"""A correct kernel is within the bound, whatever its order of sums, and the bound is not loose.

1,020 cases: 85 an operator and direction.
"""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gelu_verify.bounds import Bounded
from gelu_verify.bounds.arithmetic import Arithmetic, Growth
from gelu_verify.checks.fused.ratios import judged
from gelu_verify.formats import FORMATS
from gelu_verify.operators import fused
from tests.operators.fused import emulated
from tests.operators.fused.samples import STYLES, arithmetic, inputs, upstream
from tests.strategies import fused_dims

FORMAT_NAMES = ("fp32", "bf16", "fp16", "fp64")
SEEDS = st.integers(0, 99)
GROWTHS: tuple[Growth, ...] = ("probabilistic", "worst")


def ratio(actual: Tensor, exact: Bounded, machine: emulated.Machine, bound: Arithmetic) -> float:
    """Return the largest error over bound, 0 for fp64, which float64 is no reference for."""
    found = judged(actual, exact, machine.fmt, bound.contract, "emulated")
    assert found.broken == 0, found.faults
    return found.max_ratio if machine.fmt.bits < 64 else 0.0


@st.composite
def machines(draw: st.DrawFn) -> tuple[emulated.Machine, str]:
    """A correct kernel, and the contract that its activation holds."""
    fmt = FORMATS[draw(st.sampled_from(FORMAT_NAMES))]
    textbook = draw(st.booleans())
    casts = draw(st.booleans()) and fmt.bits == 16
    machine = emulated.Machine(fmt, draw(st.sampled_from(emulated.ORDERS)), casts, textbook)
    return machine, "cancelling" if textbook else "tail_accurate"


@pytest.mark.parametrize("name", fused.NAMES)
def test_forward_is_within_the_bound_and_the_bound_is_not_loose(name: str) -> None:
    operator = fused.get(name)
    largest: dict[str, float] = defaultdict(float)

    @settings(max_examples=85)
    @given(machines(), fused_dims(operator.dims), st.sampled_from(sorted(STYLES)), SEEDS)
    def holds(
        kernel: tuple[emulated.Machine, str], dims: dict[str, int], style: str, seed: int
    ) -> None:
        machine, contract = kernel
        given_inputs = inputs(name, dims, machine.fmt, style, seed)
        actual = emulated.forward(name, machine, given_inputs)
        for growth in GROWTHS:
            bound = arithmetic(machine.fmt.name, contract, growth)
            exact = operator.forward(given_inputs, "erf", bound)
            assert actual.shape == exact.value.shape
            largest[growth] = max(largest[growth], ratio(actual, exact, machine, bound))

    holds()
    assert min(largest[growth] for growth in GROWTHS) > 0.1


@pytest.mark.parametrize("name", fused.NAMES)
def test_gradients_are_within_the_bound_and_the_bound_is_not_loose(name: str) -> None:
    operator = fused.get(name)
    largest: dict[str, float] = defaultdict(float)

    @settings(max_examples=85)
    @given(machines(), fused_dims(operator.dims), st.sampled_from(sorted(STYLES)), SEEDS)
    def holds(
        kernel: tuple[emulated.Machine, str], dims: dict[str, int], style: str, seed: int
    ) -> None:
        machine, contract = kernel
        dims = {size: count for size, count in dims.items() if size != "b"}
        given_inputs = inputs(name, dims, machine.fmt, style, seed)
        shape = operator.output_shape(tuple(tuple(part.shape) for part in given_inputs))
        dy = upstream(shape, machine.fmt, seed)
        actual = emulated.backward(name, machine, dy, given_inputs)
        bound = arithmetic(machine.fmt.name, contract)
        parts = operator.backward(dy, given_inputs, "erf", bound)
        for argument, got, exact in zip(operator.arguments, actual, parts, strict=True):
            assert got.shape == exact.value.shape
            largest[argument] = max(largest[argument], ratio(got, exact, machine, bound))

    holds()
    assert min(largest[argument] for argument in operator.arguments) > 0.1
