"""Invariants: what holds for GELU whatever its value is."""

import pytest
import torch

from gelu_verify.checks import invariants
from tests import faulty_kernels as kernels
from tests.cases import backward, case, failures, messages

HOLD = "passed: finite, sign, bounds, minimum, monotone, not flat: hold"


@pytest.mark.parametrize(
    ("kernel", "formula", "contract"),
    [
        (kernels.correct, "erf", "tail_accurate"),
        (kernels.textbook, "erf", "cancelling"),
        (kernels.guarded, "erf", "saturating"),
        (kernels.correct_tanh, "tanh", "tail_accurate"),
        (kernels.correct_sigmoid, "sigmoid", "tail_accurate"),
        (kernels.correct_tanh, "erf", "approximation"),
    ],
)
def test_invariants_hold_when_the_kernel_is_sound(kernel, formula, contract):
    outcome = invariants.run(case(kernel, "fp32", formula=formula, contract=contract))
    assert messages(outcome) == HOLD


def test_invariants_hold_when_the_backward_is_sound():
    assert messages(invariants.run(backward(kernels.correct_backward))) == "passed: finite: hold"


@pytest.mark.parametrize(
    ("kernel", "name", "message"),
    [
        (kernels.non_monotone_tail, "bf16", "not monotone at"),
        (kernels.non_monotone_tail, "fp32", "not monotone at"),
        (kernels.flat_in_fit_domain, "bf16", "flat where the exact value moves at"),
        (kernels.flat_in_fit_domain, "fp32", "flat where the exact value moves at"),
        (kernels.above_identity, "bf16", "result exceeds max(x, 0) at"),
        (kernels.sign_flips_at_one, "bf16", "sign of the result is not the sign of x at 1 inputs"),
        (kernels.exp_quotient, "bf16", "finite input gives a non-finite result at"),
        (kernels.exp_quotient, "fp32", "finite input gives a non-finite result at"),
        (kernels.half_cube, "fp16", "finite input gives a non-finite result at"),
        (
            lambda x: torch.where((x > -1) & (x < -0.5), x * 0.3, kernels.correct(x)),
            "bf16",
            "result is below the minimum of the formula at",
        ),
    ],
)
def test_invariant_is_named_when_it_is_broken(kernel, name, message):
    formula = "tanh" if kernel in (kernels.exp_quotient, kernels.half_cube) else "erf"
    result = case(kernel, name, formula=formula)
    found = [f for f in failures(invariants.run(result)) if f.message.startswith(message)]
    assert len(found) == 1
    assert found[0].input.startswith("x = ")
    # What is to be typed shows the same fault on the same input again.
    words = found[0].reproduce.split()
    patterns = [(int(words[i + 1], 16),) for i, word in enumerate(words) if word == "--input"]
    again = invariants.run(case(kernel, name, formula=formula, replay=tuple(patterns)))
    kind = message.split(" at")[0]
    assert [f.input for f in failures(again) if f.message.startswith(kind)] == [found[0].input]


def test_finite_input_is_told_when_the_backward_gives_nan():
    (found,) = failures(invariants.run(backward(kernels.nan_at_large)))
    assert found.message.startswith("finite input gives a non-finite result at")


def test_neighbours_in_any_order_pass_when_a_sound_kernel_is_replayed():
    replay = ((0xC080,), (0xC000,), (0x3F80,), (0x8000,), (0x0000,))
    assert messages(invariants.run(case(kernels.correct, replay=replay))) == HOLD


def test_nothing_is_said_when_no_input_is_finite():
    assert not invariants.run(case(kernels.correct, replay=((0x7F80,),))).findings
