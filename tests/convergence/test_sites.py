import itertools
import math

import numpy as np
import pytest
import torch

from gelu_verify import formats
from gelu_verify.convergence import catalogue, sites
from gelu_verify.kernels.failure import KernelFailure
from gelu_verify.operators import fused
from gelu_verify.reference import oracle
from reference_kernels import torch_eager, torch_fused
from tests.convergence import kernels

POINTS = [-6.5, -2.0, -0.75, -0.125, 0.25, 1.0, 3.0]
LINEAR = sites.get("linear_gelu")
#: Those of which the exact site computes the whole operator in float64.
WHOLE = [name for name, place in sites.PLACES.items() if place.whole]
SOUND = {
    "linear_gelu": kernels.linear_gelu,
    "bias_gelu": kernels.bias_gelu,
    "gelu": kernels.gelu,
    "gelu_backward": kernels.sound_backward,
    "geglu": torch_eager.geglu,
    "layernorm_gelu": torch_fused.layernorm_gelu,
    "attention": torch_fused.attention,
    "conv_relu_pool": torch_fused.conv_relu_pool,
}
ROOM = [(place, kernel) for place, room in catalogue.ROOM.items() for kernel in room]


def drawn(name, dtype=torch.float32):
    """Return arguments of an operator that require gradients."""
    operator = fused.get(name)
    sizes = dict(zip(operator.dims, itertools.cycle((2, 3, 4, 5)), strict=False))
    torch.manual_seed(0)
    shapes = operator.shapes(sizes)
    return [torch.randn(shape).to(dtype).requires_grad_() for shape in shapes]


def gradients(site, arguments):
    y = site(*arguments)
    torch.manual_seed(1)
    return torch.autograd.grad(y, arguments, torch.randn(y.shape).to(y.dtype))


@pytest.mark.parametrize("formula", ["erf", "tanh", "sigmoid"])
def test_exact_linear_site_has_the_oracles_value_and_gradient(formula):
    x = torch.tensor([POINTS], dtype=torch.float64, requires_grad=True)
    size = len(POINTS)
    y = LINEAR.exact(formula)(x, torch.eye(size).double(), torch.zeros(size).double())
    (gradient,) = torch.autograd.grad(y.sum(), x)
    values = [float(oracle.value(formula, p)) for p in POINTS]
    slopes = [float(oracle.gelu_backward(1.0, p, formula)) for p in POINTS]
    assert y[0].tolist() == pytest.approx(values, rel=1e-13)
    assert gradient[0].tolist() == pytest.approx(slopes, rel=1e-12)


@pytest.mark.parametrize("formula", ["erf", "tanh", "sigmoid"])
@pytest.mark.parametrize("name", WHOLE)
def test_exact_site_is_mpmaths_value_rounded_once(name, formula):
    arguments = [part.detach() for part in drawn(name)]
    y = sites.get(name).exact(formula)(*arguments)
    for index in itertools.islice(np.ndindex(*y.shape), 0, None, 7):
        exact = fused.get(name).precise(tuple(arguments), formula, index)
        assert float(y[index]) == float(np.float32(float(exact)))


@pytest.mark.parametrize("name", WHOLE)
def test_exact_sites_gradient_is_that_of_finite_differences(name):
    site = sites.get(name).exact("erf")
    assert torch.autograd.gradcheck(site, drawn(name, torch.float64), eps=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", WHOLE)
def test_exact_sites_gradient_is_rounded_once(name):
    site, arguments = sites.get(name).exact("erf"), drawn(name)
    wide = [part.detach().double().requires_grad_() for part in arguments]
    for own, exact in zip(gradients(site, arguments), gradients(site, wide), strict=True):
        assert torch.equal(own, exact.float())


@pytest.mark.parametrize("name", sites.PLACES)
def test_sites_compute_in_the_dtype_of_autocast(name):
    arguments = drawn(name)
    place = sites.get(name)
    with torch.autocast("cpu", torch.bfloat16):
        for site in (place.exact("erf"), place.of_kernel(name, "erf", SOUND[name])):
            assert site(*arguments).dtype == torch.bfloat16
    narrow = [part.detach().bfloat16() for part in arguments]
    with torch.autocast("cpu", torch.bfloat16):
        actual = place.exact("erf")(*arguments)
    assert torch.equal(actual, place.exact("erf")(*narrow))


@pytest.mark.parametrize("fmt", ["fp32", "bf16"])
@pytest.mark.parametrize("name", sites.PLACES)
def test_noise_is_one_or_two_units_in_the_last_place(name, fmt):
    fmt = formats.get(fmt)
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[fmt.name]
    arguments = [part.detach() for part in drawn(name, dtype)]
    place = sites.get(name)
    clean = place.eager("erf")(*arguments).double()
    noisy = place.noisy("erf", fmt, torch.Generator().manual_seed(0))(*arguments).double()
    clean, noisy = clean[clean != 0], noisy[clean != 0]
    ulp = torch.exp2(torch.floor(torch.log2(clean.abs())) + 1 - fmt.precision)
    steps = ((noisy - clean) / ulp).abs()
    assert float(steps.max()) <= 2.0
    assert float(steps.min()) >= 0.5  # across a power of two the lower ULP is half
    assert {-1.0, 1.0} == set(torch.sign(noisy - clean).tolist())


@pytest.mark.parametrize(("name", "kernel"), ROOM)
def test_a_sound_kernel_agrees_with_the_exact_site_value_and_gradient(name, kernel):
    place = sites.get(name)
    site, arguments = place.of_kernel(kernel, "erf", SOUND[kernel]), drawn(name)
    torch.testing.assert_close(
        site(*arguments), place.exact("erf")(*arguments), rtol=1e-5, atol=1e-6
    )
    exact = gradients(place.exact("erf"), arguments)
    for own, right in zip(gradients(site, arguments), exact, strict=True):
        assert math.isclose(float((own - right).norm() / right.norm()), 0.0, abs_tol=1e-6)


@pytest.mark.parametrize("spoil", [lambda y: y[..., :-1], lambda y: y.double(), lambda y: None])
@pytest.mark.parametrize(("name", "kernel"), ROOM)
def test_a_result_of_another_shape_or_dtype_is_refused(name, kernel, spoil):
    site = sites.get(name).of_kernel(kernel, "erf", lambda *given: spoil(SOUND[kernel](*given)))
    with pytest.raises(KernelFailure, match="kernel result: got"):
        gradients(site, drawn(name))  # a gradient's kernel is called there


@pytest.mark.parametrize("name", ["linear_gelu", "geglu"])
def test_an_isolated_activation_is_the_activation_of_any_number(name):
    place = sites.get(name)
    x = torch.randn(3, 7, generator=torch.Generator().manual_seed(0)).requires_grad_()
    y = place.isolated.alone(place.eager("erf"), x)
    assert torch.equal(y, torch.nn.functional.gelu(x))
    (own,) = torch.autograd.grad(y.sum(), x)
    (right,) = torch.autograd.grad(torch.nn.functional.gelu(x).sum(), x)
    assert torch.equal(own, right)


@pytest.mark.parametrize("name", ["linear_gelu", "geglu"])
def test_what_reaches_an_isolated_activation_is_what_it_is_given_in_the_site(name):
    place, arguments, seen = sites.get(name), drawn(name), []

    def activation(x):
        y = x.square()
        seen.append(x.detach())
        y.register_hook(seen.append)
        return y

    y = place.written(activation)(*arguments)
    y.backward(dy := torch.randn(y.shape))
    assert torch.equal(place.isolated.input(*arguments), seen[0])
    assert torch.equal(place.isolated.gradient(dy, *arguments), seen[1])
