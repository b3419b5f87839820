"""Every recipe does what its name says, in the format, after rounding."""

from __future__ import annotations

import math

import pytest
import torch

from gelu_verify import formats
from gelu_verify.formats import tensors
from gelu_verify.inputs.problems import parse, recipes
from gelu_verify.operators import fused

CPU = torch.device("cpu")


def made(name, text, fmt="bf16"):
    operator = fused.get(name)
    inputs = parse(text, operator).inputs(operator, formats.get(fmt), CPU)
    return dict(zip(operator.arguments, inputs, strict=True))


def linear(values, fmt="bf16", dims="m=33,k=64,n=17"):
    return made("linear_gelu", f"{dims},values={values},seed=5", fmt)


@pytest.mark.parametrize("operator", fused.NAMES)
def test_recipes_of_an_operator_start_with_the_simplest(operator):
    assert recipes.names(fused.get(operator))[0] == "normal"


def test_products_of_normal_values_are_unit_normals():
    p = linear("normal", "fp64", "m=128,k=512,n=128")
    assert float((p["x"] @ p["weight"].T).std()) == pytest.approx(1.0, rel=0.05)


def test_every_column_has_a_bias_of_its_own():
    bias = linear("distinct", dims="m=2,k=3,n=129")["bias"].double()
    assert bias.unique().numel() == 129
    assert (float(bias.min()), float(bias.max())) == (-5.0, 3.0)
    assert not torch.equal(bias, bias.sort().values)


@pytest.mark.parametrize("fmt", ["fp16", "bf16", "fp8_e4m3fn", "fp32"])
def test_indexed_sums_are_exact_in_fp32_in_any_order(fmt):
    p = linear("indexed", fmt, "m=17,k=4096,n=9")
    exact = p["x"].double() @ p["weight"].double().T + p["bias"].double()
    order = torch.randperm(4096)
    sums = p["x"].float()[:, order] @ p["weight"].float()[:, order].T + p["bias"].float()
    assert torch.equal(sums.double(), exact)
    assert p["x"].double().unique(dim=0).shape[0] == 17


def test_one_misread_digit_is_more_than_the_ulps_of_a_result():
    p = linear("indexed", "bf16")
    step = p["weight"].double().abs()[p["weight"] != 0].min()
    assert step == 4 * 2.0**-6  # four ULP of bf16 in [2, 4)


def test_elements_without_a_product_count_up():
    part = made("geglu", "m=16,n=12,values=indexed")["gate"].double()
    assert part.unique().numel() == 192
    assert (part >= 0.5).all()
    assert (part <= 4.0).all()


@pytest.mark.parametrize("fmt", ["fp32", "bf16", "fp16", "fp64"])
def test_ladder_reaches_from_the_smallest_normal_to_overflow(fmt):
    x = linear("ladder", fmt)["x"].double()
    definition = formats.get(fmt)
    sizes = x.abs().amax(dim=1)
    assert float(sizes[0]) < 16 * definition.smallest_normal
    top = definition.largest if fmt != "fp64" else 2.0**1000
    assert float(sizes[-1]) > top / 4
    assert torch.isfinite(x).all()
    assert (sizes[1:].log2() - sizes[:-1].log2()).median() < 20 if fmt != "fp64" else True


def test_cancelling_sums_are_far_below_their_terms():
    p = linear("cancelling", "fp32", "m=9,k=65,n=7")
    x, w = p["x"].double(), p["weight"].double()
    assert ((x @ w.T).abs() < 1e-2 * (x.abs() @ w.abs().T)).double().mean() > 0.9


def test_cancelling_sums_show_products_of_eleven_bits():
    p = linear("cancelling", "fp32", "m=9,k=65,n=7")
    x, w = p["x"].double(), p["weight"].double()
    short = [tensors.round_float64(part, formats.get("fp16")).double() for part in (x, w)]
    lost = (short[0] @ short[1].T - x @ w.T).abs()
    bound = 65 * 2.0**-24 * (x.abs() @ w.abs().T)
    assert float((lost > bound).double().mean()) > 0.9


@pytest.mark.parametrize(
    ("values", "is_special"),
    [
        ("one_nan", torch.isnan),
        ("one_inf", lambda x: x == math.inf),
        ("one_minus_inf", lambda x: x == -math.inf),
        ("one_minus_zero", lambda x: (x == 0) & torch.signbit(x)),
        ("one_subnormal", lambda x: (x != 0) & (x.abs() < 2.0**-126)),
        ("one_largest", lambda x: x == formats.get("bf16").largest),
    ],
)
def test_one_special_value_is_in_one_place(values, is_special):
    places = set()
    for seed in range(12):
        p = made("linear_gelu", f"m=3,k=4,n=5,values={values},seed={seed}")
        count = {name: int(is_special(part.double()).sum()) for name, part in p.items()}
        assert sum(count.values()) == 1
        places |= {name for name, found in count.items() if found}
    assert len(places) > 1


def test_identity_leaves_x_as_it_is():
    p = linear("identity", dims="m=5,k=8,n=8")
    assert torch.equal(p["x"] @ p["weight"].T + p["bias"], p["x"])
    conv = made("conv_relu_pool", "n=2,c=3,h=4,w=6,o=3,values=identity", "fp32")
    sums = torch.nn.functional.conv2d(conv["x"], conv["weight"], conv["bias"], padding=1)
    assert torch.equal(sums, conv["x"])


def test_weight_is_zero():
    p = linear("zero_weight")
    assert not p["weight"].any()
    assert p["x"].all()


def test_mean_is_far_above_the_spread_and_survives_rounding():
    for fmt, mean in (("fp32", 1024.0), ("bf16", 32.0)):
        x = made("layernorm_gelu", "m=9,n=64,values=high_mean", fmt)["x"].double()
        assert float(x.mean()) == pytest.approx(mean, rel=0.01)
        assert 0.5 < float(x.std(dim=1).min()) <= float(x.std(dim=1).max()) < 1.5


def test_every_second_row_is_constant():
    x = made("layernorm_gelu", "m=9,n=64,values=constant_rows")["x"].double()
    constant = (x == x[:, :1]).all(dim=1)
    assert constant.tolist() == [True, False] * 4 + [True]


def scores(values):
    p = {n: part.double() for n, part in made("attention", f"l=33,d=16,values={values}").items()}
    return p["q"] @ p["k"].mT / 4


def test_scores_are_beyond_the_range_of_exp():
    found = scores("wide_scores")
    assert found.max() > 100
    assert found.min() < -100


def test_scores_share_an_offset_or_are_masked():
    assert scores("common_offset").min() > 150
    keys, rows = scores("masked_keys"), scores("masked_rows")
    assert torch.isneginf(keys).all(dim=0).tolist() == [j % 3 == 1 for j in range(33)]
    assert torch.isfinite(keys[:, ::3]).all()
    assert torch.isneginf(rows).all(dim=1).tolist() == [i % 3 == 1 for i in range(33)]


@pytest.mark.parametrize("fmt", ["bf16", "fp32"])
def test_few_keys_have_all_the_weight(fmt):
    p = made("attention", "l=40,d=16,values=few_keys", fmt)
    found = torch.softmax(p["q"].double() @ p["k"].double().T / 4.0, -1).sum(0)
    weighed = [place for place in range(40) if found[place] > 1e-6]
    assert weighed == [0, 1, 2, 37, 38, 39]
    assert float(found[3:37].sum()) < 1e-20


def test_windows_of_a_pool_have_ties_and_negative_sums():
    x = made("conv_relu_pool", "n=1,c=2,h=16,w=16,o=3,values=ties")["x"]
    assert torch.equal(x[..., ::2, :], x[..., 1::2, :])
    assert x.double().unique().tolist() == [-1.0, 1.0]
    p = made("conv_relu_pool", "n=1,c=2,h=16,w=16,o=3,values=negative", "fp32")
    sums = torch.nn.functional.conv2d(p["x"], p["weight"], p["bias"], padding=1)
    assert 0.5 < (sums < 0).double().mean() < 1.0
