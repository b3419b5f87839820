"""Routes: the same values by other ways through a kernel."""

import pytest

from gelu_verify.checks import routes
from gelu_verify.records import FindingStatus
from tests import faulty_kernels as kernels
from tests.cases import backward, case, failures, messages

ALL = (
    "passed: bit for bit as contiguous: strided, transposed, sliced, offset, expanded, 3-d, "
    "permuted, channels last, short (7), single, 0-d"
)
NOT_CONTIGUOUS = ("strided", "transposed", "sliced", "expanded", "permuted", "channels last")


@pytest.mark.parametrize("name", ["bf16", "fp16", "fp32", "fp8_e5m2"])
def test_all_routes_agree_when_the_kernel_is_sound(name):
    kernel = kernels.correct
    if name == "fp8_e5m2":

        def kernel(x):
            return kernels.correct(x.float()).to(x.dtype)

    assert messages(routes.run(case(kernel, name))) == ALL


def test_all_routes_agree_when_the_backward_is_sound():
    assert messages(routes.run(backward(kernels.correct_backward))) == ALL


@pytest.mark.parametrize(
    ("kernel", "broken"),
    [
        (kernels.ignores_strides, set(NOT_CONTIGUOUS)),
        (kernels.wrong_if_expanded, {"expanded"}),
        (kernels.wrong_if_offset, {"offset"}),
        (kernels.wrong_if_scalar, {"0-d"}),
        (kernels.wrong_if_short, {"short (7)", "single"}),
    ],
)
def test_only_the_wrong_routes_fail_when_one_is_mishandled(kernel, broken):
    outcome = routes.run(case(kernel))
    found = failures(outcome)
    assert {f.message.split(":")[0] for f in found} == broken
    judged = [f for f in found if "break the contract on this route only" in f.message]
    # Three elements for one in store: reading them in a row leaves the storage.
    assert {f.message.split(":")[0] for f in found if f not in judged} <= {"expanded"}
    assert judged
    assert all(f.input and f.reproduce for f in judged)


def test_difference_is_noted_when_both_routes_hold_the_contract():
    outcome = routes.run(case(kernels.last_bit_differs_if_short, "fp32"))
    assert not failures(outcome)
    noted = [f for f in outcome.findings if f.status is FindingStatus.NOTED]
    assert {f.message.split(":")[0] for f in noted} == {"short (7)", "single"}
    assert "results differ from contiguous; worst there" in noted[0].message


def test_refusal_is_noted_when_a_kernel_demands_contiguous_input():
    outcome = routes.run(case(kernels.demands_contiguous))
    assert not failures(outcome)
    noted = [f.message for f in outcome.findings if f.status is FindingStatus.NOTED]
    assert {text.split(":")[0] for text in noted} == set(NOT_CONTIGUOUS)
    assert all("refused (AssertionError" in text for text in noted)


def test_route_fails_when_the_kernel_crashes_on_it():
    def kernel(x):
        if not x.is_contiguous():
            raise RuntimeError("CUDA error: misaligned address")
        return kernels.correct(x)

    found = failures(routes.run(case(kernel)))
    assert len(found) == len(NOT_CONTIGUOUS)
    assert "misaligned address" in found[0].message


def test_results_are_kept_when_a_kernel_reuses_its_buffer():
    assert messages(routes.run(case(kernels.SameBuffer()))) == ALL


@pytest.mark.parametrize(
    "kernel", [kernels.wrong_if_offset, kernels.wrong_if_scalar, kernels.wrong_if_short]
)
def test_command_shows_the_same_route_when_its_input_is_replayed(kernel):
    for found in failures(routes.run(case(kernel, "fp32"))):
        words = found.reproduce.split()
        replay = (int(words[words.index("--input") + 1], 16),)
        again = failures(routes.run(case(kernel, "fp32", replay=(replay,))))
        route = found.message.split(":")[0]
        assert (route, found.input) in {(f.message.split(":")[0], f.input) for f in again}
