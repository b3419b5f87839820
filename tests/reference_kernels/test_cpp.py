"""The C++ operators: accuracy, gradients, layouts, tracing; and how their library is built."""

import importlib
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from torch.nn import functional

import gelu_verify
from gelu_verify import formats
from gelu_verify.errors import UnavailableError
from gelu_verify.formats import tensors
from gelu_verify.kernels import activity
from gelu_verify.records import Status
from gelu_verify.reference import oracle
from reference_kernels.cpp import build, derive_coefficients
from tests.reference_kernels.subprocesses import ROOT, python_path

FORMATS = ("fp64", "fp32", "bf16", "fp16")
SPECIAL = (0.0, -0.0, 1e-30, -0.7517915, 0.7517915, -5.5, 5.5, -14.3, 40.0)
OPERATORS = ("gelu_erf", "gelu_erf_backward", "linear_gelu", "linear_gelu_slope")


@pytest.fixture(scope="session")
def ops():
    """Return the operators; the first test of a machine waits for the compiler, up to a minute."""
    try:
        from reference_kernels.cpp import cpu
    except UnavailableError as error:
        pytest.skip(str(error))
    return cpu


def linear_problem(dtype=torch.float32, m=5, k=70, n=67, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((m, k), (n, k), (n,))
    return [torch.randn(s, generator=generator).to(dtype) for s in shapes]


def sample(fmt):
    generator = torch.Generator().manual_seed(3)
    x = torch.rand(150, generator=generator, dtype=torch.float64) * 18 - 14
    return torch.cat([x, torch.tensor(SPECIAL, dtype=torch.float64)]).to(tensors.dtype(fmt))


def worst_ulp(fmt, actual, exact):
    """Return the largest |actual - exact| in ULP of the exact values, mpmath numbers; NaN fails."""
    errors = [
        float(abs(got - right) / fmt.ulp(right))
        for got, right in zip(actual.double().tolist(), exact, strict=True)
    ]
    return max(errors) if all(error >= 0 for error in errors) else float("nan")


def limit_ulp(name):
    """Return what the registry promises in fp64, and what one rounding costs in the others."""
    return 4.0 if name == "fp64" else 0.501


def layouts(x):
    """Return x (12, 8) in other memory orders: transposed, with gaps, misaligned."""
    gaps = torch.zeros(24, 16, dtype=x.dtype)
    gaps[::2, ::2] = x
    offset = torch.zeros(x.numel() + 1, dtype=x.dtype)
    offset[1:] = x.flatten()
    return x.t().contiguous().t(), gaps[::2, ::2], offset[1:].view_as(x)


@pytest.mark.parametrize("name", FORMATS)
def test_gelu_is_rounded_once_at_every_kind_of_input(ops, name):
    fmt = formats.get(name)
    x = sample(fmt)
    exact = [oracle.gelu(value) for value in x.double().tolist()]
    assert worst_ulp(fmt, ops.gelu_erf(x), exact) <= limit_ulp(name)


@pytest.mark.parametrize("name", FORMATS)
def test_gradient_is_rounded_once_at_every_kind_of_input(ops, name):
    fmt = formats.get(name)
    x = sample(fmt).requires_grad_()
    dy = torch.linspace(-3, 2, len(x), dtype=torch.float64).to(x.dtype)
    (got,) = torch.autograd.grad(ops.gelu_erf(x), x, dy)
    pairs = zip(dy.double().tolist(), x.double().tolist(), strict=True)
    exact = [oracle.gelu_backward(*pair) for pair in pairs]
    assert worst_ulp(fmt, got, exact) <= limit_ulp(name)


def test_a_large_dy_saves_a_derivative_that_underflows(ops):
    x, dy = -39.5, 1e300  # GELU'(x) alone is 0 in fp64
    got = ops.gelu_erf_backward(*(torch.tensor([v], dtype=torch.float64) for v in (dy, x)))
    assert worst_ulp(formats.get("fp64"), got, [oracle.gelu_backward(dy, x)]) <= 4.0


@pytest.mark.parametrize("name", FORMATS)
def test_limits_at_infinity_and_the_sign_of_zero(ops, name):
    dtype = tensors.dtype(formats.get(name))
    inf = float("inf")
    x = torch.tensor([inf, -inf, 0.0, -0.0, float("nan")], dtype=dtype)
    assert str(ops.gelu_erf(x)[:4].tolist()) == str([inf, -0.0, 0.0, -0.0])
    slope = ops.gelu_erf_backward(torch.ones_like(x), x)
    assert slope[:4].tolist() == [1.0, 0.0, 0.5, 0.5]
    assert bool(ops.gelu_erf(x)[4].isnan() & slope[4].isnan())


def test_every_layout_gives_the_same_bits(ops):
    x = torch.randn(12, 8, generator=torch.Generator().manual_seed(1))
    dy = torch.randn(12, 8, generator=torch.Generator().manual_seed(2))
    expected, slope = ops.gelu_erf(x), ops.gelu_erf_backward(dy, x)
    for other in layouts(x):
        assert torch.equal(ops.gelu_erf(other), expected)
        assert torch.equal(ops.gelu_erf_backward(dy, other), slope)
    row = x[0].expand(5, 8)
    assert torch.equal(ops.gelu_erf(row), expected[0].expand(5, 8))


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), ()])
def test_empty_and_scalar_inputs_keep_their_shape(ops, shape):
    x = torch.ones(shape)
    assert ops.gelu_erf(x).shape == ops.gelu_erf_backward(x, x).shape == shape


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (5, 70, 67), (130, 300, 64), (64, 128, 129)])
def test_linear_gelu_sums_in_fp32_and_rounds_once(ops, name, m, k, n):
    dtype = tensors.dtype(formats.get(name))
    x, weight, bias = linear_problem(dtype, m, k, n)
    wide = [t.double() for t in (x, weight, bias)]
    exact = functional.gelu(functional.linear(*wide))
    # Blocks of 128, in each sums of four: depth 35 and the blocks; 1.13 is the slope of GELU.
    terms = functional.linear(*(t.abs() for t in wide))
    bound = 1.13 * (36 + k / 128) * 2.0**-24 * terms + 0.501 * torch.finfo(dtype).eps * exact.abs()
    error = (ops.linear_gelu(x, weight, bias).double() - exact).abs()
    assert bool((error <= bound + torch.finfo(dtype).smallest_normal).all())


def test_linear_gelu_of_a_row_does_not_depend_on_the_others(ops):
    x, weight, bias = linear_problem(m=131)
    whole = ops.linear_gelu(x, weight, bias)
    assert torch.equal(ops.linear_gelu(x[70:71], weight, bias), whole[70:71])
    assert torch.equal(ops.linear_gelu(x.view(1, 131, 1, 70), weight, bias)[0, :, 0], whole)
    strided = [t.t().contiguous().t() for t in (x, weight)]
    assert torch.equal(ops.linear_gelu(*strided, bias), whole)


@pytest.mark.parametrize(("m", "k", "n"), [(0, 3, 2), (4, 0, 2), (4, 3, 0), (0, 0, 0)])
def test_linear_gelu_of_empty_arguments(ops, m, k, n):
    arguments = [t.requires_grad_() for t in linear_problem(m=m, k=k, n=n)]
    result = ops.linear_gelu(*arguments)
    expected = functional.gelu(functional.linear(*arguments))
    assert torch.allclose(result, expected, rtol=1e-6, atol=0)
    gradients = torch.autograd.grad(result.sum(), arguments)
    assert [g.shape for g in gradients] == [t.shape for t in arguments]


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
def test_gradients_of_linear_gelu_are_rounded_once(ops, name):
    dtype = tensors.dtype(formats.get(name))
    arguments = [t.requires_grad_() for t in linear_problem(dtype)]
    dy = torch.randn(5, 67, generator=torch.Generator().manual_seed(9)).to(dtype)
    got = torch.autograd.grad(ops.linear_gelu(*arguments), arguments, dy)
    wide = [t.detach().double().requires_grad_() for t in arguments]
    exact = torch.autograd.grad(functional.gelu(functional.linear(*wide)), wide, dy.double())
    for part, right in zip(got, exact, strict=True):
        assert part.dtype == dtype
        # 16 is the largest sum of |terms| here; fp32 loses under 2^-17 of it.
        error = (part.double() - right).abs()
        assert bool((error <= 0.51 * torch.finfo(dtype).eps * right.abs() + 2.0**-17).all())


def test_gradients_are_only_computed_for_those_that_want_one(ops):
    x, weight, bias = linear_problem()
    (dweight,) = torch.autograd.grad(
        ops.linear_gelu(x, weight.requires_grad_(), bias).sum(), weight
    )
    assert dweight.shape == weight.shape


def test_second_derivatives_agree_with_differences(ops):
    x = torch.tensor([-3.0, -0.7, 0.0, 0.4, 5.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(ops.gelu_erf, (x,))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_operators_pass_opcheck(ops, operator, dtype):
    x, weight, bias = (t.requires_grad_() for t in linear_problem(dtype))
    dy = torch.ones(5, 67, dtype=dtype)
    arguments = {
        "gelu_erf": (x,),
        "gelu_erf_backward": (torch.ones_like(x), x),
        "linear_gelu": (x, weight, bias),
        "linear_gelu_slope": (dy, x, weight, bias),
    }[operator]
    found = torch.library.opcheck(
        getattr(torch.ops.gelu_verify_kernels, operator).default, arguments
    )
    assert len(found) == 4
    assert set(found.values()) == {"SUCCESS"}


def test_fakes_keep_the_memory_order(ops):
    for x in layouts(torch.randn(12, 8)):
        torch.library.opcheck(ops.gelu_erf.default, (x,), test_utils="test_faketensor")


def test_compile_traces_through_operators_and_gradients(ops):
    arguments = [t.requires_grad_() for t in linear_problem()]
    compiled = torch.compile(ops.linear_gelu, backend="aot_eager", fullgraph=True)
    result, expected = compiled(*arguments), ops.linear_gelu(*arguments)
    assert torch.equal(result, expected)
    for got, right in zip(
        torch.autograd.grad(result.sum(), arguments),
        torch.autograd.grad(expected.sum(), arguments),
        strict=True,
    ):
        assert torch.equal(got, right)


def test_wrong_arguments_are_named(ops):
    x, weight, bias = linear_problem()
    with pytest.raises(ValueError, match=r"weight: got shape \[70, 67\], expected \(N, K\)"):
        ops.linear_gelu(x, weight.t(), bias)
    with pytest.raises(ValueError, match=r"bias: got shape \[1, 67\]"):
        ops.linear_gelu(x, weight, bias[None])
    with pytest.raises(TypeError, match="weight: got dtype"):
        ops.linear_gelu(x, weight.half(), bias)
    with pytest.raises(NotImplementedError, match="Double"):
        ops.linear_gelu(x.double(), weight.double(), bias.double())
    with pytest.raises(ValueError, match="gelu_erf_backward: got dy of shape"):
        ops.gelu_erf_backward(x[0], x)


@pytest.mark.skipif(torch.version.cuda is not None, reason="torch has CUDA")
def test_torch_without_cuda_is_one_clear_line():
    with pytest.raises(UnavailableError, match=r"CUDA kernels: got torch .* without CUDA"):
        importlib.import_module("reference_kernels.cpp.cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
def test_linear_gelu_on_cuda_agrees_with_float64(ops, name):
    linear_gelu = importlib.import_module("reference_kernels.cpp.cuda").linear_gelu
    dtype = tensors.dtype(formats.get(name))
    arguments = [t.cuda().requires_grad_() for t in linear_problem(dtype)]
    result = linear_gelu(*arguments)
    got = (result, *torch.autograd.grad(result.sum(), arguments))
    wide = [t.detach().double().requires_grad_() for t in arguments]
    value = functional.gelu(functional.linear(*wide))
    exact = (value, *torch.autograd.grad(value.sum(), wide))
    for part, right in zip(got, exact, strict=True):
        error = (part.double() - right).abs()
        assert bool((error <= 0.51 * torch.finfo(dtype).eps * right.abs() + 2.0**-15).all())
    found = torch.library.opcheck(linear_gelu.default, arguments)
    assert set(found.values()) == {"SUCCESS"}


@pytest.mark.parametrize("name", ["cpp-erf", "torch.ops.gelu_verify_kernels.gelu_erf"])
def test_check_finds_an_operator_by_either_name(ops, name):
    # In a child process, which has not imported it: the registry says what registers it.
    results = gelu_verify.check(name, format="bf16", sweep="quick")
    assert [kernel.status for kernel in results.kernels] == [Status.PASSED] * 2
    assert {kernel.contract for kernel in results.kernels} == {"tail_accurate"}


def test_header_holds_the_coefficients_of_mpmath():
    assert derive_coefficients.main([]) == 0


def test_no_compiler_is_one_clear_line(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", "import reference_kernels.cpp.cpu"],
        cwd=ROOT,
        env={"PATH": str(tmp_path), "PYTHONPATH": python_path(), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    last = run.stderr.strip().splitlines()[-1]
    assert "UnavailableError: C++ kernels: got no C++ compiler (c++)" in last


def test_no_ninja_is_one_clear_line_and_one_beside_python_is_found(tmp_path, monkeypatch):
    (tmp_path / "compiler").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", "compiler")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    with pytest.raises(UnavailableError, match=r"got no ninja.*gelu_verify\[cpp\]"):
        build._require_tools()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ninja").touch(mode=0o755)
    build._require_tools()
    assert shutil.which("ninja") == str(tmp_path / "bin" / "ninja")


class Builder:
    """Stands for torch's builder: it makes a file, and counts."""

    def __init__(self):
        self.calls = 0
        self.seen = []

    def __call__(self, *, name, build_directory, **_):
        self.calls += 1
        self.seen = os.listdir(build_directory)
        self.charged = activity.running()
        time.sleep(0.2)
        (Path(build_directory) / f"{name}.so").touch()


@pytest.fixture
def builder(monkeypatch, tmp_path):
    from torch.utils import cpp_extension

    builder, loaded = Builder(), []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(build, "_require_tools", lambda: None)
    monkeypatch.setattr(cpp_extension, "load", builder)
    monkeypatch.setattr(torch.ops, "load_library", loaded.append)
    builder.loaded = loaded
    return builder


def test_two_that_need_a_library_at_once_build_it_once(builder):
    threads = [threading.Thread(target=build.load, args=("cpu.cpp",)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert builder.calls == 1
    assert len(builder.loaded) == 2


def test_leftovers_of_a_killed_build_do_not_block_the_next(builder, tmp_path):
    scratch = build._folder("cpu.cpp") / "build"
    scratch.mkdir(parents=True)
    (scratch / "lock").touch()  # torch's own, for which it would wait without end
    build.load("cpu.cpp")
    assert builder.calls == 1
    assert builder.seen == []


def test_building_is_not_the_time_of_the_kernel(builder):
    with activity.of_kernel():
        build.load("cpu.cpp")
        assert activity.running()
    assert builder.charged is False


def test_a_library_is_built_again_when_a_flag_changes(builder, monkeypatch):
    build.load("cpu.cpp")
    monkeypatch.setattr(build, "_CFLAGS", ("-O1",))
    build.load("cpu.cpp")
    assert builder.calls == 2


def test_no_folder_to_write_to_is_one_clear_line(builder, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(UnavailableError, match="got no cache folder"):
        build.load("cpu.cpp")


def test_a_failing_compiler_is_one_line(builder, monkeypatch):
    from torch.utils import cpp_extension

    def fail(**_):
        raise RuntimeError(
            "Error building extension\nFAILED: cpu.o\ncpu.cpp:1: error: no such\nend"
        )

    monkeypatch.setattr(cpp_extension, "load", fail)
    with pytest.raises(UnavailableError, match=r"build of cpu.cpp \(cpu.cpp:1: error: no such\)"):
        build.load("cpu.cpp")
