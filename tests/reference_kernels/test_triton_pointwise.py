"""The Triton kernels against mpmath at 120 bits, and at all 16-bit inputs against float64.

Without a GPU they run in Triton's CPU interpreter.
"""

import math
import os

import mpmath as mp
import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when the kernels are defined
pytest.importorskip("triton", reason="Triton is not installed")

import triton.language as tl

from reference_kernels import triton_pointwise as tp
from reference_kernels.triton_pointwise.math import bits

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PRECISION = 120
INF, NAN = math.inf, math.nan

# Largest errors that the docstrings in math/ state, with headroom for inputs not seen there.
FORWARD_LIMIT_ULP = 1.0
BACKWARD_LIMIT_ULP = 2.25
# One rounding from fp32 to 16 bits: 1/2 plus the fp32 error, 2^-13 or less of a 16-bit ULP, or
# what the docstring of math/erf_short.py states.
NARROW_LIMIT_ULP = 0.501
SHORT_LIMIT_ULP = {torch.bfloat16: 0.502, torch.float16: 0.519}

FORWARD = ("gelu_erf", "gelu_tanh", "gelu_sigmoid")
BACKWARD = tuple(f"{name}_backward" for name in FORWARD)
EDGES = (
    # branches and clamps of the kernels
    *(2.0**-30, 0.0625, 6.0, 10.0, 10.8, 13.7, 14.5, 20.0, 64.0, 121.0),
    # zeros of the derivative, and where their polynomials end
    *(0.75179154, 0.75246143, 0.75115424, 0.62746, 0.87746, 0.62615, 0.87615),
    # thresholds of the formats, torch's cancellation, the minimum of GELU, powers of two
    *(5.3475156, 5.54, 5.91016, 13.5, 14.356068, 14.541349, 1.4142135, 0.5, 1.0, 2.0, 4.0),
)


def next_fp32(values: torch.Tensor, steps: int) -> torch.Tensor:
    """Positive fp32 values moved by `steps` representable numbers."""
    return (values.view(torch.int32) + steps).view(torch.float32)


def fp32_inputs() -> torch.Tensor:
    """Edges with neighbours, all magnitudes, denser from 2^-12 to 128, both signs."""
    generator = torch.Generator().manual_seed(20250101)
    edges = torch.tensor(EDGES)
    neighbours = torch.cat([next_fp32(edges, steps) for steps in range(-6, 7)])
    bits = torch.randint(1, 0x7F800000, (200,), generator=generator, dtype=torch.int32)
    subnormal = torch.randint(1, 0x800000, (60,), generator=generator, dtype=torch.int32)
    spread = torch.exp2(torch.empty(400).uniform_(-12, 7, generator=generator))
    shoulder = torch.empty(500).uniform_(0.0, 16.0, generator=generator)
    tail = torch.empty(150).uniform_(12.8, 14.6, generator=generator)
    magnitude = torch.cat(
        [
            neighbours,
            bits.view(torch.float32),
            subnormal.view(torch.float32),
            spread,
            shoulder,
            tail,
        ]
    )
    return torch.cat([magnitude, -magnitude])


def exponent(name: str, x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    """y and y' of GELU = x·σ(y)."""
    if "sigmoid" in name:
        scale = mp.mpf("1.702")
        return scale * x, scale
    scale, cubic = 2 * mp.sqrt(2 / mp.pi), mp.mpf("0.044715")
    return scale * (x + cubic * x**3), scale * (1 + 3 * cubic * x * x)


def exact(name: str, x: float) -> mp.mpf:
    """GELU(x) or GELU'(x), by the name of the function under test."""
    x = mp.mpf(x)
    if abs(x) > 200:  # beyond fp32's reach by hundreds of orders of magnitude
        return (x if x > 0 else -mp.mpf(0)) if "backward" not in name else mp.mpf(x > 0)
    if "erf" in name:
        phi = mp.erfc(-x / mp.sqrt(2)) / 2
        density = mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)
        return phi + x * density if "backward" in name else x * phi
    y, slope = exponent(name, x)
    sigma, other = 1 / (1 + mp.exp(-y)), 1 / (1 + mp.exp(y))
    return sigma + x * sigma * other * slope if "backward" in name else x * sigma


def error_ulp(actual: float, value: mp.mpf, precision: int = 24, emin: int = -126) -> float:
    """|actual - exact| in ULP of the exact value, as in design.md section 3."""
    if not value:
        return abs(actual) / 2.0**-149
    e = max(int(mp.floor(mp.log(abs(value), 2))), emin)
    return float(abs(mp.mpf(actual) - value) / mp.ldexp(1, e - precision + 1))


def worst(
    actual: torch.Tensor, values: list[mp.mpf], inputs: torch.Tensor
) -> tuple[float, float | list[float]]:
    """The worst error as (ULP, input); fails at once where a number is not finite."""
    assert torch.isfinite(actual).all()
    errors = [error_ulp(a, v) for a, v in zip(actual.tolist(), values, strict=True)]
    index = max(range(len(errors)), key=errors.__getitem__)
    return errors[index], inputs[index].tolist()


@pytest.fixture(autouse=True)
def working_precision():
    with mp.workprec(PRECISION):
        yield


@pytest.mark.parametrize("name", FORWARD)
def test_forward_is_faithful_at_fp32_inputs(name):
    x = fp32_inputs()
    actual = getattr(tp, name)(x.to(DEVICE)).cpu()
    error, where = worst(actual, [exact(name, v) for v in x.tolist()], x)
    assert error < FORWARD_LIMIT_ULP, f"{name}({where!r}) is {error:.3f} ULP off"
    assert torch.equal(torch.signbit(actual), torch.signbit(x))


@pytest.mark.parametrize("name", BACKWARD)
@pytest.mark.parametrize("size", [1.0, 2.0**-130, 2.0**126])
def test_backward_is_accurate_for_every_size_of_dy(name, size):
    x = fp32_inputs()
    x = torch.cat([x[:: 1 if size == 1.0 else 3], torch.linspace(-20, -14, 100)])
    generator = torch.Generator().manual_seed(7)
    dy = size * (1 + torch.rand(x.shape, generator=generator))
    dy[::3] = size
    actual = getattr(tp, name)(dy.to(DEVICE), x.to(DEVICE)).cpu()
    values = [exact(name, v) * mp.mpf(d) for v, d in zip(x.tolist(), dy.tolist(), strict=True)]
    error, where = worst(actual, values, torch.stack([dy, x], 1))
    assert error < BACKWARD_LIMIT_ULP, f"{name}{tuple(where)} is {error:.3f} ULP off"


@pytest.mark.parametrize("name", BACKWARD)
def test_backward_keeps_its_digits_next_to_the_zero(name):
    root = {"gelu_erf": 0.75179154, "gelu_tanh": 0.75246143, "gelu_sigmoid": 0.75115424}
    middle = torch.tensor([root[name.removesuffix("_backward")]])
    x = -torch.cat([next_fp32(middle, steps) for steps in range(-200, 201)])
    actual = getattr(tp, name)(torch.ones_like(x).to(DEVICE), x.to(DEVICE)).cpu()
    error, where = worst(actual, [exact(name, v) for v in x.tolist()], x)
    assert error < BACKWARD_LIMIT_ULP, f"{name}(1, {where!r}) is {error:.3f} ULP off"


def float64_value(name: str, x: torch.Tensor) -> torch.Tensor:
    """GELU or its derivative in float64, in the form without cancellation in the left tail."""
    a = x.abs()
    if "erf" in name:
        q = torch.special.erfc(a / math.sqrt(2)) / 2
        slope = q - a * torch.exp(-a * a / 2) / math.sqrt(2 * math.pi)
    else:
        c = 2 * math.sqrt(2 / math.pi)
        y, z = (
            (1.702 * a, 1.702 * a)
            if "sigmoid" in name
            else (c * (a + 0.044715 * a**3), c * (a + 3 * 0.044715 * a**3))
        )
        e = torch.exp(-y)
        q = e / (1 + e)
        slope = torch.where(e > 0, e * (1 + e - z) / (1 + e) ** 2, 0.0)
    if "backward" in name:
        return torch.where(x < 0, slope, 1 - slope)
    return torch.where(x < 0, -a * q, a - a * q)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", FORWARD + BACKWARD)
def test_every_16_bit_input_is_rounded_once(name, dtype):
    x = torch.arange(-32768, 32768, dtype=torch.int32).to(torch.int16).view(dtype)
    x = x[torch.isfinite(x)]
    arguments = [x] if name in FORWARD else [torch.full_like(x, 1.25), x]
    actual = getattr(tp, name)(*[t.to(DEVICE) for t in arguments]).cpu()
    assert actual.dtype == dtype
    value = float64_value(name, x.double()) * (1 if name in FORWARD else 1.25)
    info = torch.finfo(dtype)
    _, e = torch.frexp(value)
    ulp = info.eps * torch.exp2((e - 1).clamp(min=round(math.log2(info.tiny))).double())
    error = (actual.double() - value).abs() / ulp
    limit = SHORT_LIMIT_ULP[dtype] if name == "gelu_erf" else NARROW_LIMIT_ULP
    assert bool((error <= limit).all()), f"worst at {x[error.argmax()]}: {error.max()}"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", [*FORWARD, "gelu_erf_guarded"])
def test_special_values_of_forward(name, dtype):
    x = torch.tensor([NAN, -NAN, INF, -INF, 0.0, -0.0, 1000.0, -1000.0], dtype=dtype)
    actual = getattr(tp, name)(x.to(DEVICE)).cpu()
    assert torch.isnan(actual[:2]).all()
    expected = torch.tensor([INF, -0.0, 0.0, -0.0, 1000.0, -0.0], dtype=dtype)
    assert torch.equal(actual[2:], expected)
    assert torch.equal(torch.signbit(actual[2:]), torch.signbit(expected))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", BACKWARD)
def test_special_values_of_backward(name, dtype):
    x = torch.tensor([NAN, 1.0, INF, -INF, -INF, INF, 0.0, -0.0, -1000.0], dtype=dtype)
    dy = torch.tensor([1.0, NAN, 3.0, 3.0, -3.0, INF, 3.0, 3.0, 3.0], dtype=dtype)
    actual = getattr(tp, name)(dy.to(DEVICE), x.to(DEVICE)).cpu()
    assert torch.isnan(actual[:2]).all()
    expected = torch.tensor([3.0, 0.0, -0.0, INF, 1.5, 1.5, -0.0], dtype=dtype)
    assert torch.equal(actual[2:], expected)
    assert torch.equal(torch.signbit(actual[2:]), torch.signbit(expected))


@pytest.mark.parametrize("name", FORWARD)
def test_subnormal_inputs_are_halved_within_half_a_place(name):
    bits = torch.cat([torch.arange(0, 2000), torch.arange(0x7FFF00, 0x800100)])
    x = bits.to(torch.int32).view(torch.float32)
    x = torch.cat([x, -x])
    error = (getattr(tp, name)(x.to(DEVICE)).cpu().double() - x.double() / 2).abs()
    assert bool((error <= 2.0**-150).all())


@pytest.mark.skipif(DEVICE == "cuda", reason="compiled code rounds a fused multiply-add once")
def test_results_do_not_change_when_the_interpreter_rounds_an_fma_twice(monkeypatch):
    x = torch.cat([fp32_inputs(), torch.tensor([0.0, -0.0, INF, -INF])])
    expected = tp.gelu_erf(x)
    monkeypatch.setattr(bits, "FMA_ROUNDS_TWICE", tl.constexpr(True))
    monkeypatch.setattr(tl, "fma", None)
    actual = tp.gelu_erf(x)
    assert torch.equal(actual, expected)
    assert torch.equal(torch.signbit(actual), torch.signbit(expected))


def test_guard_returns_zero_or_x_beyond_six():
    x = torch.tensor([6.0, 6.0000005, -6.0, -6.0000005, 5.5, -5.5, 0.0])
    actual = tp.gelu_erf_guarded(x.to(DEVICE)).cpu()
    plain = tp.gelu_erf(x.to(DEVICE)).cpu()
    assert actual[1] == x[1]
    assert actual[3] == 0
    keep = torch.tensor([0, 2, 4, 5, 6])
    assert torch.equal(actual[keep], plain[keep])
    assert actual[2] != 0


LAYOUTS = {
    "contiguous": lambda: torch.randn(7, 11),
    "transposed": lambda: torch.randn(11, 7).t(),
    "channels last": lambda: torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "expanded": lambda: torch.randn(7, 1).expand(7, 11),
    "sliced with a step": lambda: torch.randn(14, 22)[1::2, ::2],
    "offset": lambda: torch.randn(100)[3:],
    "scalar": lambda: torch.randn(()),
    "empty": lambda: torch.randn(0, 4),
    "longer than a program": lambda: torch.randn(65536 + 17),
    "needs a gradient": lambda: torch.randn(9, requires_grad=True),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_does_not_change_the_values(layout, dtype):
    torch.manual_seed(3)
    x = LAYOUTS[layout]().to(DEVICE, dtype)
    before = x.detach().clone()
    plain = tp.gelu_erf(x.detach().flatten().clone()).reshape(x.shape)
    actual = tp.gelu_erf(x)
    assert actual.shape == x.shape
    assert actual.dtype == dtype
    assert actual.stride() == torch.empty_like(x).stride()
    assert torch.equal(actual, plain)
    assert torch.equal(x.detach(), before)
    dy = torch.ones_like(before).expand(x.shape)
    flat = [dy.flatten().clone(), before.flatten().clone()]
    plain = tp.gelu_tanh_backward(*flat).reshape(x.shape)
    assert torch.equal(tp.gelu_tanh_backward(dy, x), plain)


def test_backward_reads_dy_and_x_of_different_layouts():
    x, dy = torch.randn(5, 6, device=DEVICE).t(), torch.randn(6, 5, device=DEVICE)
    plain = tp.gelu_erf_backward(dy.flatten(), x.flatten()).reshape(6, 5)
    assert torch.equal(tp.gelu_erf_backward(dy, x), plain)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int32, torch.complex64])
def test_other_dtypes_are_refused(dtype):
    x = torch.zeros(3, dtype=dtype, device=DEVICE)
    with pytest.raises(TypeError, match=r"expected a tensor of float32, bfloat16 or float16"):
        tp.gelu_erf(x)
    with pytest.raises(TypeError, match=r"^dy: got"):
        tp.gelu_erf_backward(x, torch.zeros(3, device=DEVICE))


def test_mismatched_dy_is_refused():
    x = torch.zeros(3, 4, device=DEVICE)
    with pytest.raises(ValueError, match=r"dy: got shape \(4,\), expected x's \(3, 4\)"):
        tp.gelu_erf_backward(torch.zeros(4, device=DEVICE), x)
    with pytest.raises(TypeError, match=r"dy: got torch\.float16, expected x's torch\.float32"):
        tp.gelu_erf_backward(x.half(), x)
