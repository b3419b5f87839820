"""The GPU's engine, in Triton's interpreter, says what torch's says; and it compiles."""

import os
import subprocess
import sys

import pytest
import torch
from torch.nn import functional

from gelu_verify.exhaustive.gpu_engine import reference_table
from gelu_verify.exhaustive.pieces import PIECE
from gelu_verify.exhaustive.spans import turning_pattern
from tests import faulty_kernels
from tests.exhaustive.passes import (
    FAULTY,
    FUNCTIONS,
    SIGN,
    SOUND,
    borders,
    different,
    flushes,
    gpu_engine,
    nan_far_out,
    overflows,
    rounded_argument,
    steps_back,
)

pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="compares on a CPU, in Triton's interpreter"
)


@pytest.mark.parametrize(("formula", "derivative"), FUNCTIONS)
def test_gpu_engine_equals_the_torch_engine(formula, derivative):
    # Ends of the zones, the turning point, a border of regions. The interpreter takes 0.2 s a call.
    ends = {b for b in borders(formula, derivative) if b > 0x3F80_0001 and b != 0x7F80_0001}
    starts = sorted(ends)[:: 6 if (formula, derivative) != ("erf", 0) else 2]
    compare(SOUND[formula], formula, derivative, [(b - 300, b + 300) for b in starts if b != SIGN])


@pytest.mark.parametrize("kernel", [*FAULTY, faulty_kernels.guarded, flushes])
def test_gpu_engine_equals_the_torch_engine_when_a_kernel_is_wrong(kernel):
    starts = [0, 0x00FFFF00, 0xC0B1FF00, 0xC0BFFF00, 0xC16EFF00]
    compare(kernel, "erf", 0, [(start, start + 0x200) for start in starts])


def test_gpu_engine_explains_a_rounded_argument_as_the_judge_does():
    parts = [(start, start + 0x200) for start in (0xC0CFFF00, 0xC1155500, 0xC1500000)]
    compare(rounded_argument, "erf", 0, parts)
    compare(rounded_argument, "tanh", 0, parts[:2])


def test_gpu_engine_equals_the_torch_engine_when_a_gradient_is_wrong():
    parts = [(start, start + 0x400) for start in (0x00FFFF00, 0xBF7FFE00, 0xC16EFE00)]
    compare(overflows, "erf", 1, parts)


def test_gpu_engine_adds_up_when_a_stretch_has_many_pieces():
    compare(steps_back, "erf", 0, [(0xC0A00000 - 0x800, 0xC0A00000 + 0x923)])
    compare(nan_far_out, "erf", 0, [(0xC1800000 - 0x21000, 0xC1800000 + 0x20123)])


def test_gpu_engine_sees_a_step_back_between_two_pieces_of_an_unordered_span():
    start = turning_pattern("erf") + 1  # its first result alone has no order with the one before

    def steps_back_once(x):
        y = functional.gelu(x)
        at = (start + PIECE) - (1 << 32)
        return torch.where(x.view(torch.int32) == at, y * (1 + 2.0**-18), y)

    compare(steps_back_once, "erf", 0, [(start - 4, start + PIECE + 4)])


def compare(kernel, formula, derivative, parts):
    assert not different(kernel, formula, derivative, parts, gpu_engine)


_COMPILE = """
import sys
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from gelu_verify.exhaustive import gpu_kernels as kernels
from gelu_verify.exhaustive.figures import COLUMNS, SAMPLES, SETS, SIZES, Column, Size
from gelu_verify.exhaustive.gpu_engine import _BINS_POWER, _REDUCED
from gelu_verify.exhaustive.pieces import FLAT_PART, FLAT_PIECE, PART, PIECE
from gelu_verify.measure import histogram

DOUBLES = ("coefficients_ptr", "constants_ptr", "sizes_ptr", "row_sizes_ptr")
DOUBLES += ("tanh_ptr", "set_sizes_ptr")
LONGS = ("table_ptr", "integers_ptr", "row_integers_ptr", "members_ptr", "places_ptr")
LONGS += ("set_integers_ptr", "bounds_ptr")
TYPES = {"actual_ptr": "*fp32"} | dict.fromkeys(("first", "begin", "stop", "low", "count"), "i64")
TYPES |= {name: "*fp64" for name in DOUBLES} | {name: "*i64" for name in LONGS}
TYPES |= {name: "i32" for name in ("rows", "pieces", "cells", "programs")}
VALUES = {c.name: int(c) for c in Column} | {
    "COLUMNS": COLUMNS, "SAMPLES": SAMPLES, "SIZES": SIZES, "SETS": SETS, "SET": int(Size.SET),
    "LOWEST": int(Size.LOWEST),
    "PIECE": PIECE, "BLOCK": PART,
    "IDENTITY": 0, "HALF": 0, "FORMULA": "erf", "DERIVATIVE": 0, "SERIES": False,
    "TERMS": int(sys.argv[1]), "LOWEST_BIN": histogram.OFFSET, "BINS": histogram.BIN_COUNT,
    "BINS_POWER": _BINS_POWER,
}

def ptx(kernel, **values):
    names = kernel.arg_names
    bits = {"actual_ptr": "*i32"} if kernel in (kernels.flat_kernel, kernels.sample_kernel) else {}
    signature = {n: (TYPES | bits).get(n, "*i32") for n in names}
    signature |= {n: "constexpr" for n in names if n.isupper()}
    constants = {(names.index(n),): v for n, v in (VALUES | values).items() if n in names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, n in enumerate(names) if "_ptr" in n}
    options = {"num_warps": 4, "enable_fp_fusion": False}
    source = ASTSource(kernel, signature, constants, aligned)
    return compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]

assert "ld.global.v4" in ptx(kernels.flat_kernel, PIECE=FLAT_PIECE, BLOCK=FLAT_PART)
assert "st.global.v4" in ptx(kernels.counter_kernel, BLOCK=2048)
assert "ld.global" in ptx(kernels.sample_kernel, BLOCK=256)
assert "st.global" in ptx(kernels.reduce_kernel, BLOCK=_REDUCED)
assert "fma.rn.f64" in ptx(kernels.measure_kernel)  # of exp only
assert "st.global" in ptx(kernels.select_kernel, SERIES=True, SETS=0)
assert "st.global" in ptx(kernels.set_kernel)
assert "st.global" in ptx(kernels.reduce_sets_kernel, BLOCK=_REDUCED)
"""


def test_kernels_compile_for_a_gpu(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    _, terms = reference_table("erf", 0, torch.device("cpu"))
    command = [sys.executable, "-c", _COMPILE, str(terms)]
    subprocess.run(command, env=environment, check=True)
