"""A rewritten model is verified; a wrong operator, gradient, wire or constant is told apart."""

import json

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

pytest.importorskip("triton", reason="Triton is not installed")

from gelu_verify.errors import UsageError
from gelu_verify.kernels.listener import Limits
from gelu_verify.records import Results, Status
from gelu_verify.rewriting import exact, isolated, run, verify
from reference_kernels.rewriting import rewrite
from tests.cli.command import here
from tests.rewriting.models import FORMS, HIDDEN, MISSES, WIDTH, Block, Written, example

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Sound:
    """Fused operators in float64, rounded once; tests put one fault into one of them."""

    @staticmethod
    def linear_gelu(x, weight, bias, formula):
        return exact.linear_gelu(x.double(), weight.double(), bias.double(), formula).to(x.dtype)

    @staticmethod
    def bias_gelu(x, bias, formula):
        return exact.bias_gelu(x.double(), bias.double(), formula).to(x.dtype)

    @staticmethod
    def layernorm_gelu(x, weight, bias, formula):
        return exact.layernorm_gelu(x.double(), weight.double(), bias.double(), formula).to(x.dtype)


class Eager:
    """What the model itself does."""

    @staticmethod
    def linear_gelu(x, weight, bias, formula):
        return functional.gelu(functional.linear(x, weight, bias))


def two_layers():
    torch.manual_seed(3)
    layers = [nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.LayerNorm(HIDDEN), nn.GELU("tanh")]
    return nn.Sequential(*layers, nn.Linear(HIDDEN, 3))


def checked(model, operators=None, x=None, **options):
    x = example() if x is None else x
    rewritten, _ = rewrite(model, (x,), operators)
    return verify(model, rewritten, (x,), **options)


def failed(results):
    return {finding.check for kernel in results.kernels for finding in kernel.failures}


def messages(results, check):
    return [f.message for k in results.kernels for f in k.findings if f.check == check]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_triton_kernels_hold_in_a_model(dtype):
    model, x = two_layers().to(DEVICE, dtype), example(dtype).to(DEVICE)
    results = checked(model, x=x)
    assert results.exit_status == 0
    (result,) = results.kernels
    assert [case.case for case in result.bound.by_case] == [
        "0 → 1: linear_gelu, erf",
        "2 → 3: layernorm_gelu, tanh",
    ]
    assert {g.argument for g in result.gradients} == {"x", "weight", "bias"}
    assert result.bound.informative > 0
    assert result.simulated == (DEVICE == "cpu")
    assert Results.model_validate_json(results.model_dump_json()) == results


def test_other_bits_than_the_originals_are_counted():
    same = checked(two_layers(), Eager)
    assert "results: 0 of 30 elements have other bits" in messages(same, "original")[0]
    other = checked(two_layers().to(DEVICE), x=example().to(DEVICE))
    assert "results: 0 of 30" not in messages(other, "original")[0]


@pytest.mark.parametrize("form", ["bias, sigmoid", "matmul", "norm", "bias, tanh of factors"])
def test_forms_that_are_written_out_hold(form):
    results = checked(Written(FORMS[form][0]).to(DEVICE), x=example().to(DEVICE))
    assert results.exit_status == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_transformer_block_holds(dtype):
    torch.manual_seed(5)
    model = Block().eval().to(DEVICE, dtype)
    tokens = torch.arange(22, device=DEVICE).reshape(2, 11) % 13
    results = checked(model, x=tokens)
    assert failed(results) == set()
    sites = [case.case for case in results.kernels[0].bound.by_case]
    assert sites == ["up → activation: linear_gelu, tanh", "last → gelu: layernorm_gelu, erf"]
    (left,) = messages(results, "left alone")
    assert "the constant 1.7 is off 1.702" in left


def test_vector_is_judged_as_one_row():
    x = example()[0, 0]
    results = checked(Written(lambda s, x: functional.gelu(x + s.short)), Sound, x)
    assert results.exit_status == 0


class WrongFormula(Sound):
    @staticmethod
    def linear_gelu(x, weight, bias, formula):
        return functional.gelu(functional.linear(x, weight, bias), approximate="tanh")


class OneElement(Sound):
    @staticmethod
    def linear_gelu(x, weight, bias, formula):
        y = Sound.linear_gelu(x, weight, bias, formula)
        return y + (torch.arange(y.numel()).reshape(y.shape) == 17) * 1e-3


class GivesNan(Sound):
    @staticmethod
    def layernorm_gelu(x, weight, bias, formula):
        y = Sound.layernorm_gelu(x, weight, bias, formula)
        return torch.where(torch.arange(y.numel()).reshape(y.shape) == 5, torch.nan, y)


@pytest.mark.parametrize("operators", [WrongFormula, OneElement, GivesNan])
def test_wrong_result_breaks_the_bound_of_its_site(operators):
    results = checked(two_layers(), operators)
    assert results.exit_status == 1
    assert "bound" in failed(results)
    assert "wiring" not in failed(results)
    assert ("rewritten inf" in messages(results, "truth")[0]) == (operators is GivesNan)
    site = "2 → 3" if operators is GivesNan else "0 → 1"
    broken = [f for f in results.kernels[0].failures if f.check == "bound"]
    assert broken[0].input.startswith(f"site {site}")


class _HalfGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y):
        return y.clone()

    @staticmethod
    def backward(ctx, dy):
        return dy * 0.999


class WrongGradient(Sound):
    @staticmethod
    def linear_gelu(x, weight, bias, formula):
        return Sound.linear_gelu(x, weight, _HalfGradient.apply(bias), formula)


def test_wrong_gradient_of_a_parameter_is_told():
    results = checked(two_layers(), WrongGradient)
    assert failed(results) == {"gradient"}
    assert [m[:6] for m in messages(results, "gradient") if "break" in m] == ["dbias:"]


def test_sound_operators_hold_in_every_form():
    for forward, _, _ in FORMS.values():
        assert failed(checked(Written(forward), Sound)) == set()


def test_wrong_wire_is_told_where_every_site_holds():
    model, x = Written(FORMS["norm"][0]), example()
    rewritten, _ = rewrite(model, (x,), Sound)
    (call,) = [node for node in rewritten.graph.nodes if node.target is Sound.layernorm_gelu]
    first, weight, bias, formula = call.args
    call.args = (first, bias, weight, formula)
    rewritten.recompile()
    assert failed(verify(model, rewritten, (x,))) == {"wiring"}


def test_wrong_formula_of_a_site_is_told_by_the_wiring():
    model, x = Written(FORMS["functional"][0]), example()
    rewritten, _ = rewrite(model, (x,), Sound)
    (call,) = [node for node in rewritten.graph.nodes if node.target is Sound.linear_gelu]
    call.args = (*call.args[:3], "tanh")
    rewritten.recompile()
    assert "wiring" in failed(verify(model, rewritten, (x,)))


def test_operator_that_raises_is_a_crash():
    class Raises(Sound):
        @staticmethod
        def linear_gelu(x: Tensor, weight: Tensor, bias: Tensor, formula: str) -> Tensor:
            raise RuntimeError("no such tile")

    results = checked(two_layers(), Raises)
    assert results.kernels[0].status is Status.CRASHED
    assert "no such tile" in results.kernels[0].findings[0].message


def test_model_without_a_site_is_no_evidence():
    results = checked(Written(MISSES["0.70"][0]), Sound)
    assert results.exit_status == 3
    assert "the constant 0.7 is off" in messages(results, "left alone")[0]


def test_model_that_is_no_function_of_its_inputs_is_refused():
    model = nn.Sequential(*two_layers(), nn.Dropout(0.5))
    with pytest.raises(UsageError, match=r"^model: got another result 0 in a second run"):
        checked(model, Sound)


def test_module_that_no_rewrite_gave_is_refused():
    model = two_layers()
    with pytest.raises(UsageError, match="no rewrite gave"):
        verify(model, torch.fx.symbolic_trace(model), (example(),))


MODEL = """
import torch
from torch import nn
from torch.nn import functional

def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 9), nn.GELU()), (torch.randn(4, 5),)

def no_model():
    return 3

def linear_gelu(x, weight, bias, formula):
    return functional.gelu(functional.linear(x, weight, bias), approximate="tanh")
"""

DIES = """
import os

def linear_gelu(x, weight, bias, formula):
    os.abort()
"""


@pytest.mark.parametrize("where", [("--format", "bf16"), ("--format", "fp32,bf16", "--in-process")])
def test_command_line_verifies_a_model(where, tmp_path, capsys, monkeypatch):
    path, out = tmp_path / "models.py", tmp_path / "results.json"
    path.write_text(MODEL)
    operators = "reference_kernels.triton_fused"
    words = ("check", f"{path}:make_model", "--rewrite", operators, "--device", DEVICE)
    done = here(capsys, monkeypatch, *words, *where)
    assert done.status == 0, done
    assert "✓ wiring: in float64 the rewritten graph is the original" in done.out
    assert here(capsys, monkeypatch, *words, "--in-process", "--json", out).status == 0
    assert [k["format"] for k in json.loads(out.read_text())["kernels"]] == ["fp32"]


def test_command_line_fails_for_a_wrong_operator_and_says_how_to_see_it(
    tmp_path, capsys, monkeypatch
):
    path = tmp_path / "models.py"
    path.write_text(MODEL)
    words = ("check", f"{path}:make_model", "--rewrite", path, "--in-process")
    done = here(capsys, monkeypatch, *words)
    assert done.status == 1
    again = f"gelu-verify check {path}:make_model --rewrite {path} --contract cancelling"
    assert again in done.out
    words = ("check", f"{path}:no_model", "--rewrite", path, "--in-process")
    done = here(capsys, monkeypatch, *words)
    assert done.status == 2
    assert "expected a torch.nn.Module and a tuple" in done.err
    done = here(
        capsys, monkeypatch, "check", f"{path}:make_model", "--rewrite", "json", "--in-process"
    )
    assert done.status == 2
    assert "rewrite: got json, expected a module with one of linear_gelu" in done.err
    for option, value in (("--operator", "gelu"), ("--sweep", "quick"), ("--save-cases", "cases")):
        words = ("check", f"{path}:make_model", "--rewrite", path, option, value)
        assert f"Drop {option}." in here(capsys, monkeypatch, *words).err


def test_operator_that_ends_its_process_is_a_crash(tmp_path, capsys, monkeypatch):
    path, operators = tmp_path / "models.py", tmp_path / "operators.py"
    path.write_text(MODEL)
    operators.write_text(DIES)
    done = here(capsys, monkeypatch, "check", f"{path}:make_model", "--rewrite", operators)
    assert done.status == 1
    assert "CRASHED" in done.out
    assert "was killed by signal SIGABRT" in done.out


IN_MODEL = """
def make_model():
    import time
    time.sleep(60)
"""
IN_OPERATOR = """
def linear_gelu(x, weight, bias, formula):
    import time
    time.sleep(60)
"""
HOARDS = """
def linear_gelu(x, weight, bias, formula):
    import time
    kept = []
    while True:
        kept.append(torch.ones(1 << 24))
        time.sleep(0.02)
"""


@pytest.mark.parametrize(
    ("code", "limits", "status", "message"),
    [
        (IN_MODEL, Limits(3.0), Status.TIMED_OUT, "no answer within 3 s. Raise --timeout"),
        (IN_OPERATOR, Limits(3.0), Status.TIMED_OUT, "no answer within 3 s. Raise --timeout"),
        (HOARDS, Limits(memory=3 << 29), Status.CRASHED, "memory: the kernel's process grew to 1."),
    ],
    ids=["model", "operator", "memory"],
)
def test_child_beyond_a_limit_is_ended(code, limits, status, message, tmp_path):
    path = tmp_path / "models.py"
    path.write_text(MODEL + code)
    (result,) = isolated.run(run.plan([f"{path}:make_model"], str(path)), limits).kernels
    assert result.status is status
    assert result.findings[0].message.startswith(message)
    assert result.findings[0].check == "call"
