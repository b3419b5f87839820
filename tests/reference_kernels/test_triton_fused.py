"""The fused Triton kernels against float64, at every 16-bit input, at strides, compiled.

Without a GPU they run in Triton's CPU interpreter, and are compiled for sm_90 in a subprocess.
"""

import importlib
import math
import os

import pytest
import torch
from torch.nn import functional

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when the kernels are defined
pytest.importorskip("triton", reason="Triton is not installed")

from triton.tools.tensor_descriptor import TensorDescriptor

from gelu_verify import formats
from gelu_verify.bounds import Arithmetic
from gelu_verify.contracts import get as contract
from gelu_verify.operators import fused
from reference_kernels import triton_fused as tf
from reference_kernels.triton_fused import compiled, launch, matmul, tma, tma_kernels
from tests.reference_kernels.subprocesses import compiling

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FORMATS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
NAN, INF = math.nan, math.inf


def gelu64(x, formula="erf"):
    if formula == "sigmoid":
        return x * torch.sigmoid(1.702 * x)
    return functional.gelu(x, approximate="none" if formula == "erf" else formula)


def attention64(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1) @ v


def layernorm64(x, weight, bias):
    return gelu64(functional.layer_norm(x, x.shape[-1:], weight, bias, 1e-5))


def conv64(x, weight, bias):
    return functional.max_pool2d(functional.relu(functional.conv2d(x, weight, bias, padding=1)), 2)


#: Kernel, float64 of it, shapes of its arguments; none a multiple of a tile.
KERNELS = {
    "bias_gelu": (tf.bias_gelu, lambda x, b: gelu64(x + b), ((3, 5, 33), (33,))),
    "geglu": (tf.geglu, lambda g, u: gelu64(g) * u, ((5, 17), (5, 17))),
    "layernorm_gelu": (tf.layernorm_gelu, layernorm64, ((3, 3, 21), (21,), (21,))),
    "conv_relu_pool": (tf.conv_relu_pool, conv64, ((2, 3, 5, 4), (5, 3, 3, 3), (5,))),
    "attention": (tf.attention, attention64, ((2, 19, 5), (2, 35, 5), (2, 35, 3))),
}


def inputs(shapes, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(s, generator=generator).to(dtype).to(DEVICE) for s in shapes]


def arithmetic(fmt):
    return Arithmetic.of(formats.get(fmt), contract("cancelling"), DEVICE)


@pytest.mark.parametrize("formula", ["erf", "tanh", "sigmoid"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_linear_gelu_is_within_its_bound_forward_and_backward(fmt, formula):
    parts = inputs(((2, 3, 37), (19, 37), (19,)), FORMATS[fmt])
    leaves = [part.clone().requires_grad_() for part in parts]
    actual = tf.linear_gelu(*leaves, formula)
    dy = inputs((actual.shape,), FORMATS[fmt], seed=1)[0]
    gradients = torch.autograd.grad(actual, leaves, dy)
    operator = fused.get("linear_gelu")
    exact = operator.forward(tuple(parts), formula, arithmetic(fmt))
    back = operator.backward(dy, tuple(parts), formula, arithmetic(fmt))
    for got, right in zip((actual, *gradients), (exact, *back), strict=True):
        error = (got.detach().double() - right.value).abs()
        assert bool((error <= right.total + right.own).all())
    assert all(torch.equal(a, b) for a, b in zip(leaves, parts, strict=True))


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("name", KERNELS)
def test_kernel_is_near_float64_forward_and_backward(name, fmt):
    kernel, exact, shapes = KERNELS[name]
    parts = inputs(shapes, FORMATS[fmt])
    leaves = [part.clone().requires_grad_() for part in parts]
    wide = [part.double().requires_grad_() for part in parts]
    actual, right = kernel(*leaves), exact(*wide)
    dy = inputs((actual.shape,), FORMATS[fmt], seed=1)[0]
    found = (actual, *torch.autograd.grad(actual, leaves, dy))
    expected = (right, *torch.autograd.grad(right, wide, dy.double()))
    limit = {"fp32": 2e-6, "bf16": 8e-3, "fp16": 1e-3}[fmt]
    for got, value in zip(found, expected, strict=True):
        assert got.dtype == FORMATS[fmt]
        assert got.shape == value.shape
        error = float(((got.double() - value).abs().max() / value.abs().max()).detach())
        assert error <= limit, f"{name}: {error} of the largest"


@pytest.mark.parametrize("formula", ["erf", "tanh", "sigmoid"])
@pytest.mark.parametrize(("fmt", "limit"), [("bf16", 0.502), ("fp16", 0.519)])
def test_fast_activation_is_rounded_once_at_every_16_bit_input(fmt, limit, formula):
    x = torch.arange(-32768, 32768, dtype=torch.int32).to(torch.int16).view(FORMATS[fmt])
    x = x[torch.isfinite(x)]
    actual = tf.geglu(x.to(DEVICE), torch.ones_like(x).to(DEVICE), formula).cpu().double()
    a = x.double().abs()
    if formula == "erf":
        tail = torch.special.erfc(a / math.sqrt(2)) / 2
    else:
        inner = a + 0.044715 * a**3
        y = 1.702 * a if formula == "sigmoid" else 2 * math.sqrt(2 / math.pi) * inner
        tail = torch.exp(-y) / (1 + torch.exp(-y))
    value = torch.where(x < 0, -a * tail, a - a * tail)
    info = torch.finfo(x.dtype)
    exponent = (torch.frexp(value)[1] - 1).clamp(min=round(math.log2(info.tiny)))
    error = (actual - value).abs() / (info.eps * torch.exp2(exponent.double()))
    assert bool((error <= limit).all()), f"{float(error.max())} ULP at {float(x[error.argmax()])}"
    assert torch.equal(torch.signbit(actual), torch.signbit(x))


@pytest.mark.parametrize("fmt", FORMATS)
def test_special_values_follow_the_limits(fmt):
    x = torch.tensor([NAN, INF, -INF, 0.0, -0.0], dtype=FORMATS[fmt], device=DEVICE)
    one = torch.ones_like(x)
    leaf = x.clone().requires_grad_()
    actual = tf.geglu(leaf, one)
    (slope,) = torch.autograd.grad(actual, leaf, one)
    assert torch.isnan(actual[0])
    assert torch.isnan(slope[0])
    assert actual[1:].tolist() == [INF, 0.0, 0.0, 0.0]
    assert slope[1:].tolist() == [1.0, 0.0, 0.5, 0.5]


STRIDES = {
    "transposed": lambda t: t.transpose(-1, -2).contiguous().transpose(-1, -2),
    "every other": lambda t: torch.stack([t, t + 1], -1).flatten(-2)[..., ::2],
    "offset": lambda t: torch.cat([t.new_zeros(3), t.flatten()])[3:].view(t.shape),
}


@pytest.mark.parametrize("layout", STRIDES)
@pytest.mark.parametrize("name", ["linear_gelu", "geglu", "layernorm_gelu", "attention"])
def test_strides_do_not_change_a_bit(name, layout):
    shapes = ((5, 37), (19, 37), (19,)) if name == "linear_gelu" else KERNELS[name][2]
    parts = inputs(shapes, torch.bfloat16)
    moved = [STRIDES[layout](p) if p.dim() > 1 else STRIDES["every other"](p) for p in parts]
    kernel = getattr(tf, name)
    found = []
    for arguments in (parts, moved):
        leaves = [part.detach().requires_grad_() for part in arguments]
        actual = kernel(*leaves)
        dy = torch.ones((), dtype=actual.dtype, device=DEVICE).expand(actual.shape)
        found.append((actual, *torch.autograd.grad(actual, leaves, dy)))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_row_does_not_depend_on_its_batch():
    x, weight, bias = inputs(((130, 70), (33, 70), (33,)), torch.bfloat16)
    whole = tf.linear_gelu(x, weight, bias)
    for rows in (1, 17):
        assert torch.equal(tf.linear_gelu(x[-rows:], weight, bias), whole[-rows:])


@pytest.mark.parametrize("grad", [True, False])
def test_pre_activation_is_saved_only_where_a_gradient_may_be_asked_for(grad, monkeypatch):
    module = importlib.import_module("reference_kernels.triton_fused.linear_gelu")
    saved = []
    whole = module.matmul

    def watched(*arguments, **options):
        saved.append(options.get("save_pre", False))
        return whole(*arguments, **options)

    monkeypatch.setattr(module, "matmul", watched)
    parts = inputs(((4, 5), (3, 5), (3,)), torch.float32)
    parts[1].requires_grad_()
    with torch.set_grad_enabled(grad):
        actual = tf.linear_gelu(*parts)
    assert saved == [grad]
    assert actual.requires_grad == grad


@pytest.mark.parametrize("shape", [(0, 5, 3), (4, 0, 3), (4, 5, 0)])
def test_linear_gelu_takes_sizes_of_zero(shape):
    m, k, n = shape
    x, weight, bias = (p.requires_grad_() for p in inputs(((m, k), (n, k), (n,)), torch.float32))
    actual = tf.linear_gelu(x, weight, bias)
    gradients = torch.autograd.grad(actual.sum(), (x, weight, bias))
    expected = gelu64(functional.linear(x.double(), weight.double(), bias.double()))
    assert torch.allclose(actual.double(), expected, rtol=1e-6, atol=0)
    assert [g.shape for g in gradients] == [x.shape, weight.shape, bias.shape]


def test_attention_is_right_where_scores_exceed_the_range_of_exp():
    q, k, v = inputs(((1, 33, 16), (1, 40, 16), (1, 40, 4)), torch.float32)
    k[:, :32] -= INF * torch.sign(q[0, 0])  # row 0: -inf until the last keys
    actual = tf.attention(100 * q[:, :1], 100 * k, v)
    expected = attention64(100 * q[:, :1].double(), 100 * k.double(), v.double())
    assert torch.allclose(actual.double(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("attention", ((70_000, 2, 4), (70_000, 3, 4), (70_000, 3, 4))),
        ("bias_gelu", ((1, 40_000_000), (40_000_000,))),
        ("geglu", ((40_000_000,), (40_000_000,))),
    ],
)
def test_no_size_exceeds_the_axes_of_a_grid(name, shapes, monkeypatch):
    # A GPU takes 2^31 - 1 programs along the first axis, 65,535 along the others.
    grids = []
    monkeypatch.setattr(launch, "run", lambda _kernel, grid, *_, **__: grids.append(grid))
    monkeypatch.setattr(launch, "INTERPRETED", False)
    monkeypatch.setattr(compiled, "is_ahead", lambda: True)  # tensors without memory will do
    kind = {"dtype": torch.bfloat16, "device": "meta", "requires_grad": True}
    parts = [torch.empty(shape, **kind) for shape in shapes]
    out = KERNELS[name][0](*parts)
    torch.autograd.grad(out, parts, torch.empty_like(out))
    assert len(grids) >= 2
    for grid in grids:
        assert grid[0] < 2**31
        assert max((1, *grid[1:])) <= 65_535


def test_wrong_arguments_are_refused():
    x, weight, bias = inputs(((3, 4), (5, 4), (5,)), torch.float32)
    with pytest.raises(TypeError, match=r"^x: got torch\.float64, expected a tensor of float32"):
        tf.linear_gelu(x.double(), weight, bias)
    with pytest.raises(TypeError, match=r"^bias: got torch\.float16"):
        tf.linear_gelu(x, weight, bias.half())
    with pytest.raises(ValueError, match=r"^weight: got shape \(4, 5\), expected \(5, 4\)"):
        tf.linear_gelu(x, weight.t(), bias)
    with pytest.raises(ValueError, match=r"^formula: got 'relu', expected one of erf, tanh"):
        tf.linear_gelu(x, weight, bias, "relu")


@pytest.mark.skipif(not launch.INTERPRETED, reason="the interpreter takes any tile")
@pytest.mark.parametrize(("parts", "persistent"), [(1, 0), (2, 0), (2, 3)])
@pytest.mark.parametrize(("m", "k", "n"), [(70, 72, 80), (64, 64, 128), (3, 8, 136)])
def test_tiles_by_descriptors_are_those_of_the_pointer_kernel(m, k, n, parts, persistent):
    x, weight, bias = inputs(((m, k), (n, k), (n,)), torch.float16)
    out, pre = torch.full((m, n), NAN).half(), torch.full((m, n), NAN).half()
    blocks = ((x, 64), (weight, 64), (out, 64 // parts), (pre, 64 // parts))
    left, right, target, saved = (
        TensorDescriptor(part, part.shape, part.stride(), [64, width]) for part, width in blocks
    )
    tiles = -(-m // 64) * -(-n // 64)
    tma_kernels.tma_matmul_kernel[(min(tiles, persistent or tiles),)](
        *(left, right, bias, target, saved, m, n, k),
        **{"FORMULA": "erf", "HAS_BIAS": True, "SAVE_PRE": True, "GROUP": 8, "PARTS": parts},
        **{"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "PERSISTENT": persistent},
    )
    z = functional.linear(x.double(), weight.double(), bias.double())
    for got, exact in ((pre, z), (out, functional.gelu(z))):
        error = (got.double() - exact).abs()
        assert bool((error <= 0.52 * 2.0**-10 * exact.abs() + 2.0**-18).all())


@pytest.mark.parametrize("before", [True, False, (False, False)])
@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_partial_sums_are_in_fp32_and_the_setting_is_as_before(name, before):
    settings, flag = torch.backends.cuda.matmul, f"allow_{name}_reduced_precision_reduction"
    default = getattr(settings, flag)
    setattr(settings, flag, before)
    try:
        with matmul.fp32_partial_sums(FORMATS[name]):
            assert getattr(settings, flag) is False
        assert getattr(settings, flag) is (before is True)
        if isinstance(before, tuple):
            assert getattr(settings, f"{flag}_split_k") is False
    finally:
        setattr(settings, flag, default)


def test_descriptors_are_not_for_layouts_that_tma_cannot_take():
    a, b = torch.ones(64, 72, dtype=torch.bfloat16), torch.ones(80, 72, dtype=torch.bfloat16).t()
    out = torch.ones(64, 80, dtype=torch.bfloat16)
    fits = tma._fits
    assert fits(a)
    assert fits(b.t())
    assert fits(out)
    assert not fits(a.t())
    assert not fits(a[:, 1:])  # an address of 2 bytes
    assert not fits(a[:, :0])
    assert not fits(a[:1].expand(64, 72))
    assert not fits(torch.ones(64, 73, dtype=torch.bfloat16))
    assert not tma.serves(a, b, None, out)  # on a CPU
    assert not tma.serves(a.float(), b.float(), None, out.float())


COMPILE = """
import json, re, subprocess, tempfile
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from reference_kernels.triton_fused import attention_kernels, conv_kernels, layernorm_kernels
from reference_kernels.triton_fused import matmul_kernels, rowwise_kernels, tma_kernels

WIDE = dict.fromkeys(("sums_ptr", "moments_ptr", "level_ptr", "dot_ptr"), "*fp32")
WIDE |= dict.fromkeys("ab", "tensordesc<bf16[64, 64]>")
WIDE |= dict.fromkeys(("out", "pre"), "tensordesc<bf16[64, 32]>")
WIDE |= {"pick_ptr": "*i8", "scale": "fp32", "epsilon": "fp32"}
CHOSEN = {
    "FORMULA": "erf", "HAS_BIAS": True, "SAVE_PRE": True, "EVEN_K": False, "GROUP": 8,
    "PARTS": 2, "PERSISTENT": 2,
    "BLOCK_D": 16, "BLOCK_E": 16, "BLOCK_P": 32, "BLOCK_O": 16, "BLOCK_C": 16,
}

def facts(kernel, storage, block_m, block_n):
    chosen = CHOSEN | {"FAST": storage != "fp32", "BLOCK_M": block_m, "BLOCK_N": block_n}
    chosen["BLOCK_K"] = 64 if storage != "fp32" else 32
    constants = {name: chosen[name] for name in kernel.arg_names if name in chosen}
    size = "i32" if "PERSISTENT" in kernel.arg_names else "i64"  # TMA counts in 32 bits
    signature = {
        name: "constexpr" if name in constants
        else WIDE.get(name, "*" + storage if name.endswith("_ptr") else size)
        for name in kernel.arg_names
    }
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    options = {"num_warps": 4, "num_stages": 3, "enable_fp_fusion": False}
    built = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(built.asm["cubin"])
        file.flush()
        tool = triton.knobs.nvidia.cuobjdump.path
        run = subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True)
    ptx = built.asm["ptx"]
    return {
        "stack_bytes": [int(n) for n in re.findall(r"STACK:(\\d+)", run.stdout)],
        "tensor_cores": "wgmma" in ptx or "mma.sync" in ptx,
        "tf32": "tf32" in ptx,
        "fp64": ".f64" in ptx,
    }

found = {}
square = (attention_kernels, matmul_kernels, tma_kernels)
for module in (*square, conv_kernels, layernorm_kernels, rowwise_kernels):
    block = (64, 64) if module in square else (4, 128)
    for name in [name for name in vars(module) if name.endswith("_kernel")]:
        found[name + " bf16"] = facts(getattr(module, name), "bf16", *block)
found["matmul_kernel fp32"] = facts(matmul_kernels.matmul_kernel, "fp32", 32, 32)
print(json.dumps(found))
"""


@pytest.mark.slow
def test_every_kernel_compiles_for_sm_90_without_spills():
    found = compiling("-c", COMPILE)
    assert len(found) == 15
    for kernel, facts in found.items():
        assert not any(facts["stack_bytes"]), f"{kernel} spills: {facts}"
        assert not facts["tf32"], kernel
        assert not facts["fp64"], kernel
    products = [n for n in found if n.split("_")[0] in ("attention", "conv", "matmul", "tma")]
    for kernel in products:
        assert found[kernel]["tensor_cores"] == kernel.endswith("bf16"), kernel
