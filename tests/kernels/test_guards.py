"""Guard bands: same values, strides and alignment; every byte that changes is seen."""

import sys
from types import ModuleType

import pytest
import torch

from gelu_verify.kernels import guards as module
from gelu_verify.kernels.failure import KernelFailure
from gelu_verify.kernels.guards import BAND, NAN, NUMBER, Guards, repeated_for_compiler, takes_out

LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.t(),
    "expanded": lambda x: x[:1].expand(5, -1),
    "sliced": lambda x: x[1:, 2:5],
    "empty": lambda x: x[:0],
    "scalar": lambda x: x[1, 1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fill", [NAN, NUMBER])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_values_strides_and_alignment_are_kept(layout, fill, dtype):
    part = LAYOUTS[layout](torch.randn(6, 7).to(dtype))
    guards = Guards(fill)
    held = guards.holding("x", part)
    assert held.stride() == part.stride()
    assert torch.equal(held, part)
    assert held.data_ptr() % 64 == (part.data_ptr() % 64 if part.numel() else held.data_ptr() % 64)
    assert not held._is_view()
    assert guards.faults() == []


@pytest.mark.parametrize("fill", [NAN, NUMBER])
@pytest.mark.parametrize("byte", [0, BAND - 1, -1])
def test_byte_outside_is_seen(fill, byte):
    guards = Guards(fill)
    guards.around("y", torch.empty(3))
    guards.guarded[0].buffer[byte] ^= 1
    far = {0: f"{BAND} before it", BAND - 1: "1 before it", -1: f"{BAND} behind it"}[byte]
    assert guards.faults() == [f"1 bytes written outside y, up to {far}"]


def test_gap_between_elements_is_a_band_too():
    guards = Guards(NAN)
    held = guards.holding("x", torch.ones(4, 4)[:, :2])
    held.as_strided((4, 4), (4, 1))[1, 3] = 2.0
    assert guards.faults() == ["4 bytes written outside x, in gaps between its elements"]


def test_contents_may_change_where_they_are_to_be_written():
    guards = Guards(NUMBER)
    guards.around("y", torch.empty(3)).fill_(1.0)
    guards.holding("x", torch.ones(3)).fill_(2.0)
    assert guards.faults() == ["x was overwritten (3 elements of it)"]


@pytest.mark.parametrize(
    "allocate",
    [
        lambda x: torch.empty(3, 4),
        torch.empty_like,
        lambda x: x.new_empty(3, 4),
        lambda x: torch.empty_strided((3, 4), (1, 3)),
    ],
)
def test_fresh_memory_is_guarded_and_filled(allocate):
    guards = Guards(NAN)
    x = torch.ones(3, 4)
    with guards.allocator(torch.device("cpu")):
        made = allocate(x)
    assert torch.isnan(made).all()
    assert made.storage_offset() * 4 >= BAND
    assert made.stride() == allocate(x).stride()


def test_tensor_is_placed_alike_while_fresh_memory_is_guarded():
    guards = Guards(NUMBER)
    with guards.allocator(torch.device("cpu")):
        held = guards.holding("dy", torch.ones(3))
    held.mul_(2)
    assert guards.faults() == ["dy was overwritten (3 elements of it)"]


def test_function_is_compiled_after_it_ran_under_guards():
    seen = []

    def backend(graph, inputs):
        seen.append(graph)
        return graph

    compiled = torch.compile(lambda x: torch.nn.functional.gelu(x) + 1, backend=backend)
    with Guards(NAN).allocator(torch.device("cpu")):
        compiled(torch.ones(3))
    assert not seen
    compiled(torch.ones(3))
    assert len(seen) == 1


@pytest.mark.parametrize(("loads", "calls"), [(True, 2), (False, 1)])
def test_call_is_repeated_only_when_it_loads_the_compiler(monkeypatch, loads, calls):
    monkeypatch.setattr(module, "_COMPILER", "a_compiler")
    monkeypatch.delitem(sys.modules, "a_compiler", raising=False)
    called = []

    def kernel():
        called.append("a_compiler" in sys.modules)
        if loads:
            monkeypatch.setitem(sys.modules, "a_compiler", ModuleType("a_compiler"))
        raise KernelFailure("refused")

    with pytest.raises(KernelFailure, match="refused"):
        repeated_for_compiler(kernel)()
    assert called == [False, True][:calls]


def test_patterns_read_as_said():
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        assert torch.isnan(Guards(NAN).around("y", torch.empty(2, dtype=dtype))).all()
        number = Guards(NUMBER).around("y", torch.empty(2, dtype=dtype))
        assert torch.isfinite(number).all()
        assert (number > 5).all()


def test_out_is_found_by_its_name():
    assert takes_out(lambda x, out=None: x)
    assert not takes_out(lambda x, output=None: x)
    assert not takes_out(torch.ops.aten.add)
