"""What is compiled ahead is what a first call compiles, bit for bit; the index lists both."""

import json
import os
import subprocess
import sys

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed")

from triton.backends.compiler import GPUTarget

from gelu_verify.errors import UnavailableError, UsageError
from reference_kernels.triton_fused import compiled, launch, warmup
from tests.cli.command import here
from tests.reference_kernels.subprocesses import compiling, python_path

#: One of sizes that are multiples of 16 and one of odd sizes: other specialisations.
CASES = ("linear_gelu:m=16,k=64,n=32", "bias_gelu:m=5,n=33")


def compiled_by(how, cache, *cases):
    words = ("-m", "tests.reference_kernels.compiling", how, *cases)
    return compiling(*words, TRITON_CACHE_DIR=str(cache))


def binaries(found):
    return sorted((part["kernel"], part["hash"], part["binary_sha256"]) for part in found)


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A cache with everything compiled ahead, and its index."""
    cache = tmp_path_factory.mktemp("ahead")
    return cache, compiled_by("ahead", cache, *CASES)


@pytest.mark.slow
def test_first_call_compiles_what_a_warmup_compiles(warm, tmp_path):
    _, ahead = warm
    met = compiled_by("met", tmp_path, *CASES)
    assert binaries(met) == binaries(ahead)
    assert all(part["ahead"] for part in ahead)
    assert not any(part["ahead"] for part in met)
    kernels = {part["kernel"] for part in ahead}
    assert {"matmul_kernel", "bias_gelu_kernel", "bias_gelu_backward_kernel"} == kernels
    # With and without the pre-activation; the products of the backward are cuBLAS's.
    assert sum(part["kernel"] == "matmul_kernel" for part in ahead) == 2


@pytest.mark.slow
def test_first_call_after_a_warmup_compiles_nothing(warm):
    cache, ahead = warm
    binaries_before = {path: path.stat().st_mtime_ns for path in cache.rglob("*.cubin")}
    assert len(binaries_before) == len(ahead)
    assert binaries(compiled_by("met", cache, *CASES)) == binaries(ahead)
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*.cubin")} == binaries_before


@pytest.mark.slow
def test_command_lists_what_is_compiled_and_where_it_is_gone(warm, capsys, monkeypatch):
    cache, ahead = warm
    monkeypatch.setenv("TRITON_CACHE_DIR", str(cache))
    done = here(capsys, monkeypatch, "list", "--compiled")
    assert done.status == 0
    assert done.out.count("matmul_kernel") == 2
    assert f"{len(ahead)} kernels; the index is {cache}" in done.out
    listed = json.loads(here(capsys, monkeypatch, "list", "--compiled", "--json").out)
    assert binaries(listed) == binaries(ahead)
    assert all(part["stored"] for part in listed)
    assert {part["purpose"] for part in listed} == {
        "linear_gelu m=16,k=64,n=32 erf",
        "bias_gelu m=5,n=33 erf",
    }
    folder = cache / listed[0]["folder"]
    folder.rename(cache / "elsewhere")
    again = json.loads(here(capsys, monkeypatch, "list", "--compiled", "--json").out)
    (cache / "elsewhere").rename(folder)
    assert [part["stored"] for part in again] == [False] + [True] * (len(ahead) - 1)


def test_nothing_compiled_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    assert "nothing is compiled" in here(capsys, monkeypatch, "list", "--compiled").out


def test_unknown_operator_or_size_is_refused(monkeypatch):
    monkeypatch.setattr(launch, "INTERPRETED", False)
    with pytest.raises(UsageError, match="got relu in bf16, expected one of linear_gelu"):
        warmup({"relu": ["m=1"]}, target=GPUTarget("cuda", 90, 32))
    with pytest.raises(UsageError):
        warmup({"bias_gelu": ["m=1,k=16"]}, target=GPUTarget("cuda", 90, 32))
    assert not compiled.is_ahead()


@pytest.mark.skipif(torch.cuda.is_available(), reason="kernels are compiled here")
def test_interpreter_compiles_nothing_and_says_so():
    with pytest.raises(UnavailableError, match="got Triton's interpreter"):
        warmup({"bias_gelu": ["m=1,n=16"]})
    assert not compiled.is_ahead()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU to run what is compiled")
def test_results_are_the_same_bits_with_and_without_a_warmup(tmp_path):
    """Each in a process and a cache of its own: what was tuned may differ, bits may not."""
    script = """
import hashlib, sys, torch
from reference_kernels import triton_fused as tf
if sys.argv[1] == "warm":
    tf.warmup({"linear_gelu": ["m=1024,k=768,n=512"]}, ("bf16",))
generator = torch.Generator().manual_seed(0)
shapes = ((1024, 768), (512, 768), (512,))
parts = [torch.randn(s, generator=generator).bfloat16().cuda().requires_grad_() for s in shapes]
y = tf.linear_gelu(*parts)
grads = torch.autograd.grad(y, parts, torch.ones_like(y))
for part in (y, *grads):
    bits = part.detach().view(torch.int16).cpu().numpy().tobytes()
    print(hashlib.sha256(bits).hexdigest())
"""
    found = []
    for how in ("warm", "cold"):
        environment = os.environ | {"TRITON_CACHE_DIR": str(tmp_path / how)}
        run = subprocess.run(
            [sys.executable, "-c", script, how],
            env=environment | {"PYTHONPATH": python_path()},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert run.returncode == 0, run.stderr[-2000:]
        found.append(run.stdout.split()[-4:])
    assert found[0] == found[1]
