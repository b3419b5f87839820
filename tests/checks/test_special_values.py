"""Special values: in every lane, at every length, on every layout."""

import pytest
import torch

from gelu_verify.checks import special_values
from gelu_verify.records import FindingStatus
from tests import faulty_kernels as kernels
from tests.cases import backward, case, failures, messages

PASSES = "passed: 16 special inputs right at 16 lengths, every lane"


@pytest.mark.parametrize("name", ["bf16", "fp16", "fp32", "fp64"])
def test_every_value_is_right_when_the_kernel_is_correctly_rounded(name):
    # In fp16 the smallest subnormal's half is a tie, which torch and the exact value round alike.
    outcome = special_values.run(case(kernels.correct, name, contract="tail_accurate"))
    assert messages(outcome) == PASSES


@pytest.mark.parametrize(
    ("kernel", "formula"),
    [(kernels.textbook, "erf"), (kernels.guarded, "erf"), (kernels.correct_tanh, "tanh")],
)
def test_every_value_is_right_when_a_sound_kernel_is_judged_by_the_default(kernel, formula):
    assert messages(special_values.run(case(kernel, "fp32", formula=formula))) == PASSES


@pytest.mark.parametrize(
    ("kernel", "contract", "shown", "message"),
    [
        (
            kernels.nan_at_infinity_in_vectors,
            "cancelling",
            "x = inf (0x7F80)",
            "x = inf: got nan, expected inf (contiguous, length 8)",
        ),
        (
            kernels.nan_becomes_clamp_bound,
            "cancelling",
            "x = nan (0x7FC0)",
            "expected nan (contiguous, length 1)",
        ),
        (
            kernels.nan_at_minus_infinity,
            "tail_accurate",
            "x = -inf (0xFF80)",
            "x = -inf: got nan, expected -0 (contiguous, length 1)",
        ),
        (
            kernels.minus_infinity_passes_through,
            "cancelling",
            "x = -inf (0xFF80)",
            "x = -inf: got -inf, expected 0 or nan (contiguous, length 1)",
        ),
        (
            kernels.positive_zero,
            "tail_accurate",
            "x = -0.0 (0x8000)",
            "x = -0.0: got 0.0, expected -0.0 (contiguous, length 1)",
        ),
        (
            kernels.flushes_subnormals,
            "tail_accurate",
            "x = 1.1663108e-38 (0x007F)",
            "x = 1.1663108e-38: got 0.0, expected 5.877472e-39 (contiguous, length 1)",
        ),
        (
            kernels.largest_overflows,
            "cancelling",
            "x = 3.3895314e+38 (0x7F7F)",
            "x = 3.3895314e+38: got inf, expected 3.3895314e+38 (contiguous, length 1)",
        ),
        (
            kernels.wrong_in_remainder_lanes,
            "cancelling",
            "x = nan (0x7FC0)",
            "x = nan: got 0.0, expected nan (contiguous, length 1)",
        ),
    ],
)
def test_fault_is_shown_when_one_special_value_is_wrong(kernel, contract, shown, message):
    found = failures(special_values.run(case(kernel, contract=contract)))
    mine = [f for f in found if f.input == shown]
    assert len(mine) == 1
    assert message in mine[0].message
    assert mine[0].reproduce.endswith(f"--contract {contract} --sweep quick --input {shown[-7:-1]}")


def test_only_the_faulty_value_fails_when_the_others_are_right():
    found = failures(special_values.run(case(kernels.nan_at_infinity_in_vectors)))
    assert [f.input for f in found] == ["x = inf (0x7F80)"]
    rows = special_values.run(case(kernels.nan_at_infinity_in_vectors)).fields["special_values"]
    (row,) = [r for r in rows if r.status is FindingStatus.FAILED]
    assert row.actual == ("inf", "nan")  # right below 8 elements


@pytest.mark.parametrize(
    ("kernel", "contract"),
    [
        (kernels.nan_at_minus_infinity, "cancelling"),
        (kernels.positive_zero, "saturating"),
        (kernels.positive_zero, "cancelling"),
    ],
)
def test_oddity_passes_when_the_contract_leaves_it_open(kernel, contract):
    assert messages(special_values.run(case(kernel, contract=contract))) == PASSES


@pytest.mark.parametrize("lane", range(8))
def test_lane_is_found_when_one_lane_of_eight_loses_nan(lane):
    def kernel(x):
        y = kernels.correct(x).clone()
        if x.dim() == 1 and x.numel() == 8 and x[lane].isnan():
            y[lane] = -0.0
        return y

    found = failures(special_values.run(case(kernel)))
    assert found
    assert all("(contiguous, length 8)" in f.message for f in found)


@pytest.mark.parametrize("layout", ["strided", "transposed", "0-d"])
def test_layout_is_named_when_only_it_is_wrong(layout):
    chosen = {
        "strided": lambda x: x.dim() == 1 and x.numel() and x.stride() == (2,),
        "transposed": lambda x: x.dim() == 2 and x.stride(0) == 1 and x.stride(1) > 1,
        "0-d": lambda x: x.dim() == 0,
    }[layout]

    def kernel(x):
        y = kernels.correct(x)
        return torch.where(torch.isnan(y), 7.0, y) if chosen(x) else y

    found = failures(special_values.run(case(kernel)))
    assert found
    assert all(f.message.endswith(f"expected nan ({layout})") for f in found)


@pytest.mark.parametrize("error", [AssertionError(""), RuntimeError("misaligned address")])
def test_check_goes_on_when_a_kernel_refuses_a_layout(error):
    def kernel(x):
        if not x.is_contiguous():
            raise error
        return kernels.correct(x)

    assert messages(special_values.run(case(kernel))) == PASSES


def test_derivative_at_infinity_is_noted_when_the_contract_does_not_judge_it():
    kernel = kernels.nan_at_infinities
    outcome = special_values.run(backward(kernel))
    assert not failures(outcome)
    rows = {row.input: row for row in outcome.fields["special_values"]}
    assert rows["inf (0x7F80)"].status is FindingStatus.NOTED
    assert rows["inf (0x7F80)"].expected == "1 (not judged)"
    assert rows["-inf (0xFF80)"].expected == "0 (not judged)"


def test_derivative_at_infinity_fails_when_the_contract_is_correctly_rounded():
    kernel = kernels.nan_at_infinities
    found = failures(special_values.run(backward(kernel, contract="correctly_rounded")))
    assert {f.input for f in found} == {"x = inf (0x7F80)", "x = -inf (0xFF80)"}
    assert {f.message.split(" (")[0] for f in found} == {
        "x = inf: got nan, expected 1",
        "x = -inf: got nan, expected 0",
    }
    assert all("--input 0x3F80,0x" in f.reproduce for f in found)
    sound = backward(kernels.correct_backward, contract="correctly_rounded")
    assert not failures(special_values.run(sound))
