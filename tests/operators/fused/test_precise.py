"""One element in mpmath against the algebra's value: they differ by at most its own error."""

from __future__ import annotations

import itertools
import math

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gelu_verify.formats import FORMATS
from gelu_verify.operators import fused
from tests.operators.fused.samples import STYLES, arithmetic, inputs
from tests.strategies import fused_dims

FORMULAS = ("erf", "tanh", "sigmoid")


@pytest.mark.parametrize("name", fused.NAMES)
def test_the_value_is_within_its_own_error(name: str) -> None:
    operator = fused.get(name)
    largest = []

    @settings(max_examples=30)
    @given(
        st.sampled_from(("fp64", "fp32", "bf16", "fp16")),
        fused_dims(operator.dims),
        st.sampled_from(sorted(STYLES)),
        st.sampled_from(FORMULAS),
        st.integers(0, 99),
    )
    def holds(fmt: str, dims: dict[str, int], style: str, formula: str, seed: int) -> None:
        parts = inputs(name, dims, FORMATS[fmt], style, seed)
        exact = operator.forward(parts, formula, arithmetic(fmt))
        places = list(itertools.product(*(range(size) for size in exact.value.shape)))
        for index in places[:: max(1, len(places) // 3)]:
            if math.isfinite(exact.value[index]):
                truth = operator.precise(parts, formula, index)
                with mpmath.workprec(300):
                    error = float(abs(mpmath.mpf(float(exact.value[index])) - truth))
                own = float(exact.own.expand_as(exact.value)[index])
                assert error <= own, (index, error, own)
                largest.append(error / own if own else 0.0)

    holds()
    assert len(largest) > 30
    assert max(largest) > 1e-4  # an own error of anything would hold too


def test_linear_gelu_is_exact_where_float64_cancels() -> None:
    x = torch.tensor([[1e16, 1.0, -1e16]], dtype=torch.float64)
    ones = torch.ones(1, 3, dtype=torch.float64)
    bias = torch.zeros(1, dtype=torch.float64)
    truth = fused.get("linear_gelu").precise((x, ones, bias), "erf", (0, 0))
    assert float(truth) == pytest.approx(0.8413447460685429, rel=1e-15)  # Φ(1)


def test_layernorm_gelu_of_a_known_row() -> None:
    # Mean 2, variance 2/3: the last element is 1/√(2/3 + 1e-5).
    row = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64)
    weight, bias = torch.ones(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    operator = fused.get("layernorm_gelu")
    s = 1 / math.sqrt(2 / 3 + 1e-5)
    expected = s * 0.5 * math.erfc(-s / math.sqrt(2))
    assert float(operator.precise((row, weight, bias), "erf", (0, 2))) == pytest.approx(expected)
    assert float(operator.precise((row, weight, bias), "erf", (0, 1))) == 0.0


def test_conv_relu_pool_of_known_sums() -> None:
    # Ones everywhere: 4 taps at a corner, 6 at a border, 9 inside.
    ones = torch.ones(1, 1, 5, 4, dtype=torch.float64)
    weight, bias = torch.ones(1, 1, 3, 3, dtype=torch.float64), torch.tensor([0.5]).double()
    operator = fused.get("conv_relu_pool")
    places = [(0, 0, i, j) for i in range(2) for j in range(2)]
    found = [float(operator.precise((ones, weight, bias), "erf", at)) for at in places]
    assert found == [9.5] * 4
    lower = -100 * torch.ones(1, dtype=torch.float64)
    assert float(operator.precise((ones, weight, lower), "erf", (0, 0, 0, 0))) == 0.0


def test_attention_of_known_scores() -> None:
    # Scores 0 and ln 3: weights 1/4 and 3/4.
    q = torch.ones(1, 2, 1, dtype=torch.float64)
    k = torch.tensor([[[0.0], [math.log(3)]]], dtype=torch.float64)
    v = torch.tensor([[[4.0], [8.0]]], dtype=torch.float64)
    found = fused.get("attention").precise((q, k, v), "erf", (0, 1, 0))
    assert float(found) == pytest.approx(7.0, rel=1e-15)


@pytest.mark.parametrize("name", fused.NAMES)
def test_gradients_are_those_of_autograd_in_float64(name: str) -> None:
    operator = fused.get(name)
    dims = {"b": 1, "m": 3, "n": 4, "k": 5, "c": 2, "h": 5, "w": 4, "o": 3, "l": 4, "d": 3}
    dims = {size: dims[size] for size in operator.dims}
    parts = inputs(name, dims, FORMATS["fp64"], seed=3)
    leaves = tuple(part.clone().requires_grad_() for part in parts)
    result = _TORCH[name](*leaves)
    dy = torch.randn(result.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expected = torch.autograd.grad(result, leaves, dy)
    for got, right in zip(
        operator.backward(dy, parts, "erf", arithmetic("fp64")), expected, strict=True
    ):
        torch.testing.assert_close(got.value, right, rtol=1e-12, atol=1e-13)


_F = torch.nn.functional
_TORCH = {
    "linear_gelu": lambda x, w, b: _F.gelu(_F.linear(x, w, b)),
    "bias_gelu": lambda x, b: _F.gelu(x + b),
    "geglu": lambda gate, up: _F.gelu(gate) * up,
    "layernorm_gelu": lambda x, w, b: _F.gelu(_F.layer_norm(x, x.shape[-1:], w, b)),
    "conv_relu_pool": lambda x, w, b: _F.max_pool2d(_F.conv2d(x, w, b, padding=1).relu(), 2),
    "attention": _F.scaled_dot_product_attention,
}


@pytest.mark.parametrize("name", ["linear_gelu", "bias_gelu", "geglu"])
def test_identity_is_the_activation_alone(name: str) -> None:
    operator = fused.get(name)
    x = torch.tensor([-3.0, -0.0, 0.5, 2.0, 7.0], dtype=torch.float32)
    arguments = operator.identity(x)
    assert arguments is not None
    found = operator.forward(arguments, "erf", arithmetic("fp32")).value.flatten()[:5]
    expected = [v * 0.5 * math.erfc(-v / math.sqrt(2)) for v in x.tolist()]
    assert found.tolist() == pytest.approx(expected, rel=1e-14)
