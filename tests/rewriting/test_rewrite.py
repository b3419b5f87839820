"""Every form of a site is replaced, by what computes the same; every near-miss stays."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

pytest.importorskip("triton", reason="Triton is not installed")

from reference_kernels import triton_fused
from reference_kernels.rewriting import constants, rewrite
from tests.rewriting.models import FORMS, HIDDEN, MISSES, WIDTH, Written, example

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def gradients(model, x):
    leaf = x.clone().requires_grad_()
    result = model(leaf)
    # By name: tracing keeps the names of parameters, not their order.
    parameters = [part for _, part in sorted(model.named_parameters())]
    dy = torch.linspace(-1, 1, result.numel(), device=x.device).reshape(result.shape)
    parts = torch.autograd.grad(result, [leaf, *parameters], dy.to(result.dtype), allow_unused=True)
    return [result.detach(), *(part for part in parts if part is not None)]


def calls(model):
    return [node.target for node in model.graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize("form", FORMS)
def test_form_is_replaced_by_what_computes_the_same(form):
    forward, operator, formula = FORMS[form]
    model, x = Written(forward).to(DEVICE), example().to(DEVICE)
    rewritten, report = rewrite(model, (x,))
    assert [(site.operator, site.formula) for site in report.replaced] == [(operator, formula)]
    assert report.left == ()
    assert getattr(triton_fused, operator) in calls(rewritten)
    assert not [name for name in map(str, calls(rewritten)) if "gelu" in name and "built" in name]
    found, expected = gradients(rewritten, x), gradients(model, x)
    assert len(found) == len(expected)
    for got, right in zip(found, expected, strict=True):
        assert got.shape == right.shape
        difference = float((got - right).norm() / right.norm())
        assert difference <= 1e-6, difference


@pytest.mark.parametrize("miss", MISSES)
def test_near_miss_is_left_alone(miss):
    forward, reason = MISSES[miss]
    model, x = Written(forward), example()
    rewritten, report = rewrite(model, (x,))
    assert report.replaced == ()
    assert len(report.left) == 1
    assert reason in report.left[0].reason
    assert torch.equal(_first(rewritten(x.clone())), _first(model(x.clone())))


def _first(result):
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_near_miss_of_a_constant_is_left_alone_in_16_bits_too(dtype):
    for miss in ("0.70", "1.7"):
        model = Written(MISSES[miss][0], dtype)
        _, report = rewrite(model, (example(dtype),))
        assert report.replaced == ()


def test_modules_are_replaced_and_parameters_keep_their_names():
    layers = [nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.LayerNorm(HIDDEN), nn.GELU("tanh")]
    model = nn.Sequential(*layers, nn.Linear(HIDDEN, 3)).to(DEVICE)
    x = example().to(DEVICE)
    rewritten, report = rewrite(model, (x,))
    assert [str(site) for site in report.replaced] == [
        "0 → 1: linear_gelu, erf",
        "2 → 3: layernorm_gelu, tanh",
    ]
    assert dict(rewritten.named_parameters()).keys() == dict(model.named_parameters()).keys()
    assert rewritten.get_parameter("0.weight") is model[0].weight
    for got, right in zip(gradients(rewritten, x), gradients(model, x), strict=True):
        assert float((got - right).norm() / right.norm()) <= 1e-6


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (nn.Dropout(0.1), "dropout comes between"),
        (nn.ReLU(), "1 is no linear, bias or layer norm"),
        (nn.LayerNorm(HIDDEN, elementwise_affine=False), "1 has no bias"),
        (nn.utils.parametrizations.weight_norm(nn.Linear(HIDDEN, 3)), "no linear"),
    ],
)
def test_module_between_keeps_a_site(module, reason):
    model = nn.Sequential(nn.Linear(WIDTH, HIDDEN), module, nn.GELU()).eval()
    _, report = rewrite(model, (example(),))
    assert report.replaced == ()
    assert reason in report.left[0].reason


@pytest.mark.parametrize("place", [0, 1])
def test_module_with_a_hook_is_left_alone(place):
    model = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.GELU())
    model[place].register_forward_hook(lambda module, arguments, result: 2 * result)
    _, report = rewrite(model, (example(),))
    assert report.left[0].reason == f"{place} has hooks"


def test_model_is_not_changed():
    model, x = Written(FORMS["functional"][0]), example()
    before = model(x)
    rewrite(model, (x,))
    assert torch.equal(model(x), before)


def test_traced_model_is_taken_as_it_is():
    model = torch.fx.symbolic_trace(Written(FORMS["functional"][0]))
    nodes = len(model.graph.nodes)
    _, report = rewrite(model, (example(),))
    assert len(report.replaced) == 1
    assert len(model.graph.nodes) == nodes


def test_inputs_that_the_model_does_not_take_are_refused():
    with pytest.raises(ValueError, match=r"^inputs: got 1 that the model does not run on"):
        rewrite(Written(FORMS["functional"][0]), (example(width=WIDTH + 1),))


def test_operator_that_is_missing_is_not_used():
    class Only:
        bias_gelu = staticmethod(triton_fused.bias_gelu)

    _, report = rewrite(Written(FORMS["functional"][0]), (example(),), Only)
    assert report.left[0].reason == "the operators have no linear_gelu"


def test_model_that_cannot_be_traced_is_refused():
    class Branches(nn.Module):
        def forward(self, x):
            return functional.gelu(x) if x.sum() > 0 else x

    with pytest.raises(ValueError, match=r"^model: got Branches, which torch\.fx cannot trace"):
        rewrite(Branches(), (example(),))


@pytest.mark.parametrize("formula", constants.CONSTANTS)
def test_tolerance_keeps_half_of_the_contract(formula):
    """Deviating by the tolerance changes f by at most half of max(4 ULP, |x|·2^-24), in mpmath."""
    import mpmath

    def value(x, scale, index):
        found = [mpmath.mpf(c) for c in constants.CONSTANTS[formula]]
        found[index] *= scale
        if formula == "erf":
            return x * mpmath.erfc(-x * found[0]) / 2
        y = found[0] * x if formula == "sigmoid" else 2 * found[0] * (x + found[1] * x**3)
        return x / (1 + mpmath.exp(-y))

    for index, _ in enumerate(constants.CONSTANTS[formula]):
        off = constants.tolerance(formula, index, torch.float32)
        used = []
        with mpmath.workprec(200):
            for step in range(-650, 651, 7):
                x = mpmath.mpf(step) / 100
                right = value(x, 1, index)
                allowed = max(4 * mpmath.mpf(2) ** -24 * abs(right), abs(x) * mpmath.mpf(2) ** -24)
                change = abs(value(x, 1 + mpmath.mpf(off), index) - right)
                used.append(float(change / allowed) if allowed else 0.0)
        assert 0.49 <= max(used) <= 0.5001
    assert math.isnan(constants.deviation(formula, (math.nan,) * (index + 1))[0])
    assert constants.refusal(formula, (math.nan,) * (index + 1), torch.float32) is not None


@pytest.mark.parametrize("activation", ["gelu", nn.GELU()])
def test_gelu_inside_a_module_that_is_not_traced_is_reported(activation):
    layer = nn.TransformerEncoderLayer(WIDTH, 1, HIDDEN, 0.0, activation, batch_first=True)
    _, report = rewrite(nn.Sequential(layer, nn.Linear(WIDTH, 3)), (example(),))
    assert report.replaced == ()
    assert str(report.left[0]) == (
        "0: left alone, torch.fx does not look inside TransformerEncoderLayer"
    )
