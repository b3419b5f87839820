import math

import pytest
import torch

from gelu_verify import formats
from gelu_verify.convergence import sites
from gelu_verify.reference import oracle
from tests.convergence import kernels

POINTS = [-6.5, -2.0, -0.75, -0.125, 0.25, 1.0, 3.0]


@pytest.mark.parametrize("formula", ["erf", "tanh", "sigmoid"])
def test_exact_site_has_the_oracles_value_and_gradient(formula):
    x = torch.tensor([POINTS], dtype=torch.float64, requires_grad=True)
    size = len(POINTS)
    y = sites.exact(formula)(x, torch.eye(size).double(), torch.zeros(size).double())
    (gradient,) = torch.autograd.grad(y.sum(), x)
    values = [float(oracle.value(formula, p)) for p in POINTS]
    slopes = [float(oracle.gelu_backward(1.0, p, formula)) for p in POINTS]
    assert y[0].tolist() == pytest.approx(values, rel=1e-13)
    assert gradient[0].tolist() == pytest.approx(slopes, rel=1e-12)


@pytest.mark.parametrize("name", ["fp32", "bf16"])
def test_noise_is_one_or_two_units_in_the_last_place(name):
    fmt = formats.get(name)
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[name]
    x = torch.linspace(0.5, 4, 64, dtype=dtype)[None]
    weight, bias = torch.eye(64, dtype=dtype), torch.zeros(64, dtype=dtype)
    clean = sites.at_activation(sites.eager("erf"))(x, weight, bias).double()
    noisy = sites.noisy("erf", fmt, torch.Generator().manual_seed(0))(x, weight, bias).double()
    ulp = torch.exp2(torch.floor(torch.log2(clean)) + 1 - fmt.precision)
    steps = ((noisy - clean) / ulp).abs()
    assert float(steps.max()) <= 2.0
    assert float(steps.min()) >= 0.5  # across a power of two the lower ULP is half
    assert {-1.0, 1.0} == set(torch.sign(noisy - clean)[0].tolist())


def test_sites_of_all_operators_agree():
    torch.manual_seed(0)
    x, weight, bias = torch.randn(3, 5, 8), torch.randn(6, 8), torch.randn(6)
    wanted = sites.exact("erf")(x, weight, bias)
    for name in ("gelu", "bias_gelu", "linear_gelu"):
        site = sites.of_kernel(name, "erf", getattr(kernels, name), None)
        torch.testing.assert_close(site(x, weight, bias), wanted, rtol=1e-5, atol=1e-6)
    site = sites.of_kernel("gelu_backward", "erf", kernels.sound_backward, None)
    leaf = x.requires_grad_()
    (own,) = torch.autograd.grad(site(leaf, weight, bias).sum(), leaf)
    (exact,) = torch.autograd.grad(sites.exact("erf")(leaf, weight, bias).sum(), leaf)
    assert math.isclose(float((own - exact).norm() / exact.norm()), 0.0, abs_tol=1e-6)
