"""torch's routes to the fused operators: the formula of each, what makes one unavailable."""

import subprocess
import sys

import pytest
import torch
from torch.nn import functional

from gelu_verify.kernels.registry import registered
from gelu_verify.operators import fused
from reference_kernels import torch_fused
from tests.reference_kernels.subprocesses import ROOT, python_path


def problem():
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(s, generator=generator) for s in ((2, 33, 5), (7, 5), (7,))]


def exact(x, weight, bias, approximate="none"):
    sums = functional.linear(x.double(), weight.double(), bias.double())
    return functional.gelu(sums, approximate=approximate)


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch without oneDNN")
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_onednn_computes_the_formula_of_its_name(approximate):
    from reference_kernels import torch_onednn

    name = "linear_gelu" if approximate == "none" else "linear_gelu_tanh"
    actual = getattr(torch_onednn, name)(*problem())
    # 1e-4 apart, the two formulas differ by up to 4.7e-4.
    assert float((actual - exact(*problem(), approximate)).abs().max()) < 1e-5


def test_addmm_epilogue_is_erf_on_a_cpu_and_has_no_gradient():
    x, weight, bias = problem()
    actual = torch_fused.linear_gelu_epilogue(x.requires_grad_(), weight, bias)
    assert float((actual - exact(x.detach(), weight, bias)).abs().max()) < 1e-5
    assert actual.grad_fn is None


def test_compiled_routes_say_what_is_missing_without_a_compiler(tmp_path):
    code = "import reference_kernels.torch_compiled"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PATH": str(tmp_path), "PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
        check=False,
    )
    last = run.stderr.strip().splitlines()[-1]
    assert "UnavailableError: torch.compile: got no C++ compiler (g++)" in last


def test_only_operators_that_exist_are_registered():
    names = {spec.operator for spec in registered().values()} - {"gelu", "gelu_backward"}
    assert names == set(fused.NAMES)
