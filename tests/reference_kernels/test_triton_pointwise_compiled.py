"""The Triton kernels compiled for sm_90, without a GPU: spills, instructions, width of loads."""

import pytest

from tests.reference_kernels.subprocesses import compiling

pytest.importorskip("triton", reason="Triton is not installed")

COMPILE = """
import json, re, subprocess, tempfile
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from reference_kernels.triton_pointwise import kernels
from reference_kernels.triton_pointwise.launch import GPU_BLOCK, GPU_WARPS

PATHS = 2  # one for whole blocks, one with masks: an element goes through one of them

def output(tool, *arguments):
    return subprocess.run([tool, *arguments], capture_output=True, text=True, check=True).stdout

def machine_code(cubin):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        usage = output(triton.knobs.nvidia.cuobjdump.path, "-res-usage", file.name)
        listing = output(triton.knobs.nvidia.nvdisasm.path, "-c", file.name)
    stack = [int(found) for found in re.findall(r"STACK:(\\d+)", usage)]
    lines = re.findall(r"^\\s+/\\*[0-9a-f]{4}\\*/\\s+(?!NOP)(\\S.*?);", listing, re.MULTILINE)
    return stack, lines

found = {}
for name in [name for name in vars(kernels) if name.endswith("_kernel")]:
    for storage in ("fp32", "i16", "fp16"):
        kernel = getattr(kernels, name)
        block = GPU_BLOCK[4 if storage == "fp32" else 2]
        pointers = [arg for arg in kernel.arg_names if arg.endswith("_ptr")]
        signature = dict.fromkeys(pointers, "*" + storage) | {"count": "i64", "BLOCK": "constexpr"}
        # as launched for whole tensors: addresses and count divisible by 16
        divisible = {(i,): [["tt.divisibility", 16]] for i in range(len(pointers) + 1)}
        source = ASTSource(kernel, signature, constexprs={"BLOCK": block}, attrs=divisible)
        options = {"num_warps": GPU_WARPS, "enable_fp_fusion": False}
        built = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
        ptx = built.asm["ptx"]
        stack, lines = machine_code(built.asm["cubin"])
        found[f"{name} {storage}"] = {
            "stack_bytes": stack,
            "instructions": len(lines) * GPU_WARPS * 32 / block / PATHS,
            "loads": [line for line in lines if "LDG" in line],
            "flushing": sorted(set(re.findall(r"[a-z0-9.]+\\.ftz[a-z0-9.]*", ptx))),
            "fp64": ".f64" in ptx,
            "calls": "call." in ptx or "call (" in ptx,
        }
print(json.dumps(found))
"""
# Their arguments and results are far from subnormal.
FLUSHING = {"rsqrt.approx.ftz.f32", "ex2.approx.ftz.f32"}
# What an H200 hides behind the memory traffic of an element, about 29e12 lane instructions a second
# against 4.1e12 bytes: 54 instructions for 8 bytes, 27 for 4.
MOST_INSTRUCTIONS = {"fp32": 54, "i16": 27, "fp16": 27}


@pytest.fixture(scope="module")
def compiled():
    """What became of every kernel and storage type on sm_90."""
    return compiling("-c", COMPILE)


def test_every_kernel_compiles_for_sm_90_without_spills(compiled):
    assert len(compiled) == 7 * 3
    for kernel, facts in compiled.items():
        assert facts["stack_bytes"], kernel
        assert not any(facts["stack_bytes"]), f"{kernel} spills: {facts}"
        assert set(facts["flushing"]) <= FLUSHING, kernel
        assert not facts["fp64"], kernel
        assert not facts["calls"], kernel
        assert all(".128" in line for line in facts["loads"]), kernel


@pytest.mark.parametrize("storage", MOST_INSTRUCTIONS)
def test_erf_kernel_is_short_enough_for_the_speed_of_memory(compiled, storage):
    count = compiled[f"gelu_erf_kernel {storage}"]["instructions"]
    assert 10 < count <= MOST_INSTRUCTIONS[storage], f"{count} instructions an element"
