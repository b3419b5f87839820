"""Kernels in a C shared library, compiled here and checked through the command line."""

import json
import shutil
import subprocess

import pytest
import torch

from gelu_verify.errors import UsageError
from gelu_verify.kernels import loading, registry
from tests.cli.command import here

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc, gcc or clang)")
pytestmark = needs_compiler

SOURCE = r"""
#include <math.h>
#include <stddef.h>

void textbook(const float *x, float *out, size_t n) {
    for (size_t i = 0; i < n; ++i)
        out[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678118654752f));
}
void textbook_double(const double *x, double *out, size_t n) {
    for (size_t i = 0; i < n; ++i)
        out[i] = 0.5 * x[i] * (1.0 + erf(x[i] * 0.70710678118654752440));
}
void with_tanh(const float *x, float *out, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        float v = x[i];
        out[i] = 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
    }
}
void crashing(const float *x, float *out, size_t n) { *(volatile float *)8 = x[n - 1]; }
void skips_last(const float *x, float *out, size_t n) {
    if (n) textbook(x, out, n - 1);
}
static size_t calls_with_zero = 0;
void counts_zero(const float *x, float *out, size_t n) {
    calls_with_zero += n == 0;
    for (size_t i = 0; i < n; ++i) out[i] = (float)calls_with_zero;
}
void gelu_backward(const float *dy, const float *x, float *out, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        double v = x[i], tail = isinf(v) ? 0.0 : v * exp(-0.5 * v * v) * 0.39894228040143267794;
        out[i] = (float)(dy[i] * (0.5 * erfc(v * -0.70710678118654752440) + tail));
    }
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    (folder / "k.c").write_text(SOURCE)
    path = folder / "libk.so"
    command = [COMPILER, "-O1", "-shared", "-fPIC", "-ffp-contract=off", str(folder / "k.c")]
    subprocess.run([*command, "-o", str(path), "-lm"], check=True, timeout=60)
    return path


def _check(capsys, monkeypatch, tmp_path, kernel, *options):
    """Return the exit status and the results of ``gelu-verify check``, quick."""
    path = tmp_path / "r.json"
    done = here(capsys, monkeypatch, "check", kernel, "--sweep", "quick", "--json", path, *options)
    return done.status, json.loads(path.read_text())["kernels"]


def _load(kernel, arguments=("x",)):
    return loading.load(registry.find(kernel), arguments)


def test_textbook_kernel_passes_in_fp32_only_when_no_format_is_given(
    library, capsys, monkeypatch, tmp_path
):
    kernel = f"{library}:textbook"
    status, (result,) = _check(capsys, monkeypatch, tmp_path, kernel)
    assert (status, result["status"], result["format"]) == (0, "passed", "fp32")
    assert result["formula_found"]["found"] == "erf"


def test_double_is_passed_when_fp64_is_asked(library, capsys, monkeypatch, tmp_path):
    kernel = f"{library}:textbook_double"
    status, (result,) = _check(capsys, monkeypatch, tmp_path, kernel, "--format", "fp64")
    assert (status, result["status"], result["format"]) == (0, "passed", "fp64")
    # Far left the textbook form loses everything: 2^53 ULP is 100 %.
    assert result["accuracy"]["max_error_ulp"] > 2**52
    zero_from = result["saturation"]["zero_from"]
    assert -8.5 < zero_from < -8.2


def test_wrong_formula_is_found_when_tanh_is_declared_erf(library, capsys, monkeypatch, tmp_path):
    status, (result,) = _check(capsys, monkeypatch, tmp_path, f"{library}:with_tanh")
    assert (status, result["status"]) == (1, "failed")
    assert any("tanh" in f["message"] for f in result["findings"] if f["check"] == "formula")


def test_verdict_is_crashed_once_when_the_library_segfaults(library, capsys, monkeypatch, tmp_path):
    status, (result,) = _check(capsys, monkeypatch, tmp_path, f"{library}:crashing")
    assert (status, result["status"]) == (1, "crashed")
    assert "SIGSEGV" in result["findings"][-1]["message"]


def test_backward_is_checked_when_the_symbol_is_named_so(library, capsys, monkeypatch, tmp_path):
    status, (result,) = _check(
        capsys, monkeypatch, tmp_path, f"{library}:gelu_backward", "--contract", "cancelling"
    )
    assert result["operator"] == "gelu_backward"
    assert (status, result["status"]) == (0, "passed"), result["findings"]


@pytest.mark.parametrize("name", ["bf16", "fp16", "fp8_e5m2"])
def test_kernel_is_unavailable_when_c_has_no_type_for_the_format(
    library, capsys, monkeypatch, tmp_path, name
):
    kernel = f"{library}:textbook"
    status, (result,) = _check(capsys, monkeypatch, tmp_path, kernel, "--format", name)
    assert (status, result["status"]) == (3, "unavailable")
    assert "float (fp32) or double (fp64)" in result["findings"][0]["message"]


def test_layouts_are_made_contiguous_when_the_kernel_is_called(library):
    x = torch.linspace(-3, 3, 24).reshape(4, 6)
    kernel = _load(f"{library}:textbook")
    for view in (x.t(), x[:, ::2], x[0, 0], x.expand(2, 4, 6)):
        result = kernel(view)
        assert torch.equal(result, kernel(view.contiguous()))
        assert result.shape == view.shape
        assert result.data_ptr() != view.data_ptr()


def test_unwritten_elements_are_nan_when_the_kernel_leaves_them(library):
    result = _load(f"{library}:skips_last")(torch.ones(5))
    assert torch.isnan(result).tolist() == [False] * 4 + [True]


def test_function_is_called_when_the_input_is_empty(library):
    kernel = _load(f"{library}:counts_zero")
    before = kernel(torch.zeros(1)).item()
    assert kernel(torch.zeros(0)).shape == (0,)
    assert kernel(torch.zeros(1)).item() == before + 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.so:f", ("kernel library: got missing.so", "existing shared library")),
        ("text.so:f", ("kernel library text.so", "does not load", "cc -shared")),
        ("libk.so:gelou", ("got no symbol gelou", "nm -D libk.so")),
        ("libk.so", ("expected path/to/lib.so:symbol",)),
        ("libk.so:", ("expected path/to/lib.so:symbol",)),
        ("libk.so.1:a-b", ("expected path/to/lib.so:symbol",)),
    ],
)
def test_one_line_says_what_is_wrong_when_a_library_is_bad(
    library, monkeypatch, tmp_path, name, words
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.so").write_text("no library")
    (tmp_path / "libk.so").symlink_to(library)
    with pytest.raises(UsageError) as caught:
        _load(name)
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_spec_declares_one_format_and_the_cpu_when_a_library_is_named(library):
    spec = registry.find(f"{library}:textbook")
    assert (spec.formats, spec.devices, spec.operator) == (("fp32",), ("cpu",), "gelu")
