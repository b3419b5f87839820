"""How rounding errors grow: against sums that are rounded on purpose."""

from __future__ import annotations

import math

import pytest
import torch

from gelu_verify.bounds import Arithmetic
from gelu_verify.contracts import get
from gelu_verify.formats import FORMATS
from gelu_verify.kernels.spec import Declared
from tests.operators.fused.samples import arithmetic

BF16 = FORMATS["bf16"]


def test_worst_growth_is_gamma() -> None:
    worst = arithmetic("fp32", growth="worst")
    u = 2.0**-24
    assert worst.growth_of(1000, 1) == pytest.approx(1000 * u / (1 - 1000 * u), rel=1e-12)
    assert worst.growth_of(0, 1) == 0.0
    assert worst.growth_of(1 << 23, 1) == math.inf


def test_probable_growth_is_that_of_a_root_and_never_beyond_the_worst() -> None:
    likely = arithmetic("fp32")
    for n in (1, 31, 64, 512, 4096):
        assert likely.growth_of(n, 1000) <= likely.worst_of(n)
    # λ from 2n·sums·exp(-λ²/2) = 1e-9, n = 4096, a million sums.
    deviation = math.sqrt(2 * math.log(2 * 4096 * 1e6 / 1e-9))
    expected = deviation * 64 * 2.0**-24
    assert likely.growth_of(4096, 10**6) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("n", [512, 4096])
def test_random_sums_stay_within_the_probable_bound(n: int) -> None:
    terms = torch.randn(400, n, generator=torch.Generator().manual_seed(1))
    total = torch.zeros(400)
    for column in terms.t():
        total = total + column
    error = (total.double() - terms.double().sum(1)).abs() / terms.double().abs().sum(1)
    bound = arithmetic("fp32").growth_of(n, 400)
    assert float(error.max()) < bound < arithmetic("fp32").worst_of(n)


def _block_sum(products: torch.Tensor, block: int, bits: int) -> torch.Tensor:
    """Add as a tensor core does: cut each addend at the last bit of the largest, then the sum."""
    total = torch.zeros(products.shape[0], dtype=torch.float64)
    for part in products.split(block, 1):
        addends = torch.cat((total.unsqueeze(1), part), 1)
        _, top = torch.frexp(addends.abs().amax(1, keepdim=True))
        last = torch.ldexp(torch.ones_like(total.unsqueeze(1)), top - bits)
        exact = (torch.trunc(addends / last) * last).sum(1)
        _, top = torch.frexp(exact)
        last = torch.ldexp(torch.ones_like(exact), top - bits)
        total = torch.trunc(exact / last) * last
    return total


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("block", [4, 8, 16])
@pytest.mark.parametrize("n", [16, 4096])
def test_truncated_blocks_stay_within_the_bound_of_tensor_cores(
    n: int, block: int, positive: bool
) -> None:
    generator = torch.Generator().manual_seed(n)
    a, b = (torch.randn(200, n, generator=generator).bfloat16().double() for _ in range(2))
    products = (a * b).abs() if positive else a * b
    error = (_block_sum(products, block, 24) - products.sum(1)).abs() / products.abs().sum(1)
    cuda = Arithmetic.of(BF16, get("cancelling"), device="cuda")
    largest = float(error.max())
    assert largest <= cuda.growth_of(n, 200, products=True) <= cuda.worst_of(n, products=True)
    if positive and n == 4096 and block == 4:
        assert largest > 0.05 * cuda.growth_of(n, 200, products=True)
        assert largest > arithmetic("bf16").growth_of(n, 200)  # no bound of rounding covers it


def test_what_is_declared_is_assumed() -> None:
    contract = get("cancelling")
    strict = Arithmetic.of(FORMATS["fp32"], contract, "cuda")
    assert (strict.input_unit, strict.truncates, strict.casts) == (0.0, False, ())
    tf32 = Arithmetic.of(FORMATS["fp32"], contract, "cuda", Declared(products="tf32"))
    assert (tf32.input_unit, tf32.truncates) == (2.0**-10, True)
    assert Arithmetic.of(FORMATS["fp64"], contract, "cuda").unit == 2.0**-53
    assert not Arithmetic.of(FORMATS["fp64"], contract, "cuda", Declared(products="fp64")).truncates
    short = Arithmetic.of(BF16, contract, "cpu", Declared(accumulate="bf16", casts=("scores",)))
    assert short.unit == 2.0**-8
    assert short.may_cast("scores")
    assert not short.may_cast("sums")
    assert Arithmetic.of(BF16, contract).may_cast("anything")
    for name in ("2^-10", "truncated"):
        assert name in tf32.sentence
