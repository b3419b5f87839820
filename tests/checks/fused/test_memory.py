"""Memory: kernels with one fault each, all of which give right values on tensors of their own."""

import pytest
import torch

from gelu_verify.checks.fused import memory
from gelu_verify.records import FindingStatus
from tests.cases import failures, messages
from tests.checks.fused.contract_cases import Fused, by_hand, fused_case, sound


def _behind(part, count):
    """The elements of the storage behind a tensor, where there are so many."""
    end = part.storage_offset() + part.numel()
    if part.untyped_storage().nbytes() < (end + count) * part.element_size():
        return None
    return part.detach().as_strided((count,), (1,), end)


def reads_behind_bias(x, weight, bias):
    """Adds 0 times what lies behind the bias: NaN there is not lost."""
    outside = _behind(bias, 1)
    return sound(x, weight, bias if outside is None else bias + 0 * outside)


def takes_maximum_behind(x, weight, bias):
    """A maximum that skips NaN: only a number there shows."""
    outside = _behind(x, 1)
    if outside is None:
        return sound(x, weight, bias)
    return torch.fmax(sound(x, weight, bias), outside)


def writes_behind_x(x, weight, bias):
    outside = _behind(x, 3)
    if outside is not None:
        outside.zero_()
    return sound(x, weight, bias)


def writes_before_weight(x, weight, bias):
    if weight.storage_offset():
        weight.detach().as_strided((1,), (1,), weight.storage_offset() - 1).zero_()
    return sound(x, weight, bias)


def overwrites_bias(x, weight, bias):
    y = sound(x, weight, bias)
    with torch.no_grad():
        bias.mul_(2)
    return y


def leaves_last_column(x, weight, bias):
    y = torch.empty(x.shape[0], weight.shape[0], dtype=x.dtype)
    y[:, :32] = sound(x, weight, bias)[:, :32]
    return y


def writes_behind_its_buffer(x, weight, bias):
    y = torch.empty(x.shape[0], weight.shape[0], dtype=x.dtype)
    outside = _behind(y, 5)
    if outside is not None:
        outside.zero_()
    return y.copy_(sound(x, weight, bias))


def adds_to_its_buffer(x, weight, bias):
    return torch.empty(x.shape[0], weight.shape[0], dtype=x.dtype).mul_(0) + sound(x, weight, bias)


class _SpoilsSaved(Fused):
    @staticmethod
    def backward(ctx, dy):
        found = Fused.backward(ctx, dy)
        ctx.saved_tensors[2].data.mul_(0)
        return found


class _SpoilsDy(Fused):
    @staticmethod
    def backward(ctx, dy):
        found = Fused.backward(ctx, dy)
        dy.data.mul_(2)
        return found


class _Once(Fused):
    @staticmethod
    def backward(ctx, dy):
        if getattr(ctx, "done", False):
            raise OSError("buffers are gone")
        ctx.done = True
        return Fused.backward(ctx, dy)


class _Donates(Fused):
    """Goes backward once, and then reuses what it saved: as torch.compile says and does."""

    @staticmethod
    def backward(ctx, dy):
        if not getattr(ctx, "asked", False):
            ctx.asked = True
            raise RuntimeError("compiled with non-empty donated buffers, wants retain_graph=False")
        found = Fused.backward(ctx, dy)
        ctx.saved_tensors[-1].data.mul_(0)
        return found


class _DonatesAndSpoilsDy(_Donates):
    @staticmethod
    def backward(ctx, dy):
        found = _Donates.backward(ctx, dy)
        dy.data.mul_(2)
        return found


def with_out(x, weight, bias, out=None):
    y = sound(x, weight, bias)
    return y if out is None else out.copy_(y)


def leaves_out(x, weight, bias, out=None):
    y = sound(x, weight, bias)
    if out is None:
        return y
    out[1:] = y[1:]
    return out


@pytest.mark.parametrize("kernel", [sound, by_hand, with_out, _Donates.apply])
def test_memory_passes_when_the_kernel_is_sound(kernel):
    (found,) = memory.run(fused_case(kernel)).findings
    assert found.status is FindingStatus.PASSED
    assert found.message.startswith("nothing read or written outside of guard bands")
    assert found.message.endswith("(6 cases)")


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (reads_behind_bias, "the result depends on memory outside its arguments"),
        (takes_maximum_behind, "the result depends on memory outside its arguments"),
        (writes_behind_x, "bytes written outside argument x, up to 6 behind it"),
        (writes_before_weight, "bytes written outside argument weight, up to 2 before it"),
        (overwrites_bias, "argument bias was overwritten (1 elements of it)"),
        (leaves_last_column, "the result: 33 of 1,089 elements never written, first at [0, 32]"),
        (writes_behind_its_buffer, "written outside buffer 1 of the kernel (1, 1), up to 10"),
        (adds_to_its_buffer, "the result depends on memory outside its arguments"),
        (_SpoilsSaved.apply, "backward changed 1 elements of a saved tensor (1, 1)"),
        (_SpoilsSaved.apply, "a second backward gives another dx"),
        (_SpoilsDy.apply, "dy was overwritten (1 elements of it)"),
        (_DonatesAndSpoilsDy.apply, "dy was overwritten (1 elements of it)"),
        (_Once.apply, "a second backward through the same graph failed: OSError: buffers are gone"),
        (leaves_out, "out: 1 of 1 elements never written, first at [0, 0]"),
    ],
)
def test_fault_is_named_when_a_kernel_touches_what_is_not_its_own(kernel, message):
    found = failures(memory.run(fused_case(kernel)))
    assert any(message in f.message for f in found), [f.message for f in found]
    assert all("--case m=" in f.reproduce for f in found)


def test_custom_operator_is_guarded_inside():
    @torch.library.custom_op("gelu_verify_tests::leaves_first", mutates_args=())
    def kernel(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        y = torch.empty(x.shape[0], weight.shape[0], dtype=x.dtype)
        y[1:] = sound(x, weight, bias)[1:]
        return y

    (found, *_) = failures(memory.run(fused_case(kernel)))
    assert found.message == "the result: 1 of 1 elements never written, first at [0, 0]"


def test_random_results_are_no_memory_fault():
    def kernel(x, weight, bias):
        y = sound(x, weight, bias).detach()
        return y + torch.rand(y.shape).to(y.dtype)

    assert not failures(memory.run(fused_case(kernel)))


def test_case_alone_runs_when_it_is_asked_for():
    seen = []

    def kernel(x, weight, bias):
        seen.append(tuple(x.shape))
        return sound(x, weight, bias)

    memory.run(fused_case(kernel, cases=("m=3,k=5,n=7",)))
    assert set(seen) == {(3, 5)}


def test_refused_sizes_are_said():
    def kernel(x, weight, bias):
        if x.shape[1] % 16:
            raise ValueError("K must be a multiple of 16")
        return sound(x, weight, bias)

    text = messages(memory.run(fused_case(kernel)))
    assert text.count("noted: refused: ") == 5
    assert "(1 cases)" in text


def adds_in_any_order(x, weight, bias):
    """Two halves of K in an order that is drawn, so that last bits differ from call to call."""
    half = -(-x.shape[-1] // 2)
    parts = [a @ b.t() for a, b in zip(x.split(half, -1), weight.split(half, -1), strict=True)]
    total = bias
    for index in torch.randperm(len(parts)).tolist():
        total = total + parts[index]
    return total


def adds_what_is_behind_in_any_order(x, weight, bias):
    outside = _behind(bias, 1)
    return adds_in_any_order(x, weight, bias if outside is None else bias + 0 * outside)


def test_declared_order_of_sums_is_no_stray_read():
    torch.manual_seed(0)
    for _ in range(3):
        case = fused_case(adds_in_any_order, "fp32", nondeterministic="atomics")
        assert failures(memory.run(case)) == []


def test_stray_read_shows_when_the_order_of_sums_is_not_fixed():
    case = fused_case(adds_what_is_behind_in_any_order, "fp32", nondeterministic="atomics")
    found = failures(memory.run(case))
    assert any("the result depends on memory outside" in f.message for f in found)
