"""The GPU's pass, in Triton's interpreter, says what the torch pass says; and it compiles."""

import json
import os
import subprocess
import sys

import pytest
import torch

from gelu_verify.exhaustive import transport
from gelu_verify.exhaustive.gpu_pass import GpuPass, reference_table
from gelu_verify.exhaustive.pieces import FLAT_PIECE
from tests import faulty_kernels
from tests.exhaustive.passes import FUNCTIONS, SOUND, census, overflows, steps_back

pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="compares on a CPU, in Triton's interpreter"
)
#: Whole pieces of every kind: what a call on a GPU measures is a multiple.
SIZE = FLAT_PIECE
#: Where the deep tail ends in flat zeros, for every function; the rest for one.
STARTS = [
    *((formula, derivative, 0xC1600000) for formula, derivative in FUNCTIONS),
    *(("erf", derivative, start) for derivative in (0, 1) for start in (0, 0x40AA0000)),
]
SUMS = ("signed_sum", "small_square_sum")


def flat(value, path=""):
    """Paths to leaves of nested JSON objects."""
    if not isinstance(value, dict):
        return {path: value}
    return {k: v for key, part in value.items() for k, v in flat(part, f"{path}/{key}").items()}


@pytest.mark.parametrize(("formula", "derivative", "start"), STARTS)
def test_gpu_pass_equals_the_torch_pass(formula, derivative, start):
    compare(SOUND[formula], formula, derivative, start)


@pytest.mark.parametrize(
    ("kernel", "start"),
    [
        (overflows, 0xC0C00000),
        (steps_back, 0xBF800000),
        (faulty_kernels.sign_flips_at_one, 0xBF820000),
    ],
)
def test_gpu_pass_equals_the_torch_pass_when_a_kernel_is_wrong(kernel, start):
    compare(kernel, "erf", 0, start - SIZE)


def compare(kernel, formula, derivative, start):
    parts = [(start, start + SIZE)]
    texts = (
        transport.dumps(census(kernel, formula, derivative, parts)),
        transport.dumps(census(kernel, formula, derivative, parts, cls=GpuPass)),
    )
    torch_pass, gpu_pass = (flat(json.loads(text)) for text in texts)
    for path in torch_pass.keys() | gpu_pass.keys():
        got, expected = gpu_pass.get(path), torch_pass.get(path)
        if path.endswith(SUMS):
            # The exact values are evaluated with other roundings, far below the unit.
            assert abs(got - expected) <= max(8, 1e-12 * abs(expected)), path
        else:
            assert got == expected, path


_COMPILE = """
import sys
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from gelu_verify.exhaustive import gpu_kernels
from gelu_verify.exhaustive.gpu_pass import _BINS_POWER
from gelu_verify.exhaustive.pieces import FLAT_PIECE, PIECE
from gelu_verify.measure import histogram

def compiled(kernel, types, constants):
    names = kernel.arg_names
    signature = {n: types.get(n, "constexpr") for n in names}
    values = {(names.index(n),): v for n, v in constants.items()}
    options = {"num_warps": 8, "enable_fp_fusion": False}
    source = ASTSource(kernel, signature, values)
    return compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]

work = {"starts_ptr": "*i64", "counts_ptr": "*i64", "first": "i64"}
flat = work | {"actual_ptr": "*i32", "kinds_ptr": "*i32", "wrong_ptr": "*i32"}
sizes = {"IDENTITY": 0, "HALF": 0, "BLOCK": PIECE, "CHUNKS": FLAT_PIECE // PIECE}
assert ".target sm_90" in compiled(gpu_kernels.flat_kernel, flat, sizes)
full = work | {
    "actual_ptr": "*fp32", "spans_ptr": "*i32", "falling_ptr": "*i32", "table_ptr": "*fp64",
    "largest_ptr": "*fp64", "integers_ptr": "*i64", "histogram_ptr": "*i32", "sums_ptr": "*i64",
    "constants_ptr": "*fp64",
}
constants = {
    "FORMULA": "erf", "DERIVATIVE": 1, "SERIES": False, "TERMS": int(sys.argv[1]),
    "LOWEST_BIN": histogram.OFFSET, "BINS": histogram.BIN_COUNT, "BINS_POWER": _BINS_POWER,
    "BLOCK": PIECE,
}
assert "fma.rn.f64" in compiled(gpu_kernels.measure_kernel, full, constants)
"""


def test_kernels_compile_for_a_gpu(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    _, terms = reference_table("erf", 1, torch.device("cpu"))
    command = [sys.executable, "-c", _COMPILE, str(terms)]
    subprocess.run(command, env=environment, check=True)
