"""Checks of bias_gelu and geglu: sound kernels hold, each fault is seen by the check it is for."""

from __future__ import annotations

import pytest
import torch

from gelu_verify.checks import accuracy, conduct, formula, invariants, routes, special_values
from gelu_verify.checks import saturation as saturation_check
from tests import faulty_kernels as kernels
from tests.cases import case, failures, messages

CHECKS = (conduct, accuracy, formula, special_values, saturation_check, invariants, routes)


def run(check, kernel, operator, name="bf16", **options):
    return check.run(case(kernel, name, operator=operator, **options))


def allowances(outcome) -> set[str]:
    return {use.allowance for use in outcome.fields["accuracy"].allowances}


@pytest.mark.parametrize("name", ["bf16", "fp16", "fp32", "fp8_e5m2"])
@pytest.mark.parametrize(
    ("kernel", "operator"), [(kernels.bias_once, "bias_gelu"), (kernels.geglu_once, "geglu")]
)
def test_every_check_holds_the_strictest_contracts_when_the_kernel_rounds_once(
    kernel, operator, name
) -> None:
    for check in CHECKS:
        outcome = run(check, kernel, operator, name, contract="faithful")
        assert not failures(outcome), messages(outcome)


@pytest.mark.parametrize("name", ["bf16", "fp16", "fp32"])
@pytest.mark.parametrize(
    ("kernel", "operator"), [(kernels.bias_eager, "bias_gelu"), (kernels.geglu_eager, "geglu")]
)
def test_a_rounded_intermediate_holds_by_its_name_and_not_silently(kernel, operator, name) -> None:
    outcome = run(accuracy, kernel, operator, name, contract="tail_accurate")
    assert not failures(outcome), messages(outcome)
    assert allowances(outcome) == {"intermediate"}
    for use in outcome.fields["accuracy"].allowances:
        assert use.count > 0
        assert abs(use.worst.error_ulp) > 4.0
    strict = run(accuracy, kernel, operator, name, contract="faithful")
    assert failures(strict)
    assert outcome.fields["tightest"].contract == "tail_accurate"


@pytest.mark.parametrize(
    ("check", "kernel", "operator", "name"),
    [
        (accuracy, kernels.bias_ignored, "bias_gelu", "bf16"),
        (accuracy, kernels.bias_twice, "bias_gelu", "bf16"),
        (accuracy, kernels.bias_after, "bias_gelu", "bf16"),
        (accuracy, kernels.bias_tanh, "bias_gelu", "bf16"),
        (formula, kernels.bias_tanh, "bias_gelu", "fp16"),
        (routes, kernels.bias_by_row, "bias_gelu", "bf16"),
        (accuracy, kernels.bias_through_bf16, "bias_gelu", "fp16"),
        (accuracy, kernels.bias_through_bf16, "bias_gelu", "fp32"),
        (accuracy, kernels.bias_nan_dropped, "bias_gelu", "bf16"),
        (accuracy, kernels.geglu_swapped, "geglu", "bf16"),
        (formula, kernels.geglu_swapped, "geglu", "bf16"),
        (accuracy, kernels.geglu_up_ignored, "geglu", "bf16"),
        (accuracy, kernels.geglu_tanh, "geglu", "bf16"),
        (formula, kernels.geglu_tanh, "geglu", "fp32"),
        (accuracy, kernels.geglu_coarse, "geglu", "bf16"),
        (accuracy, kernels.geglu_fma, "geglu", "fp16"),
    ],
)
def test_fault_is_seen_by_its_check(check, kernel, operator, name) -> None:
    found = failures(run(check, kernel, operator, name))
    assert found
    assert all(f.reproduce for f in found)


def test_formula_is_named_when_another_is_computed() -> None:
    found = run(formula, kernels.geglu_tanh, "geglu", "fp32").fields["formula_found"]
    assert found.found == "tanh"


def test_nan_of_the_bias_must_come_through() -> None:
    outcome = run(accuracy, kernels.bias_nan_dropped, "bias_gelu")
    classes = {c.name: c for c in outcome.fields["accuracy"].classes}
    assert classes["number_for_nan"].first.inputs["bias"] == "nan"


def test_rows_that_share_a_bias_are_a_route() -> None:
    outcome = run(routes, kernels.bias_eager, "bias_gelu")
    assert messages(outcome) == (
        "passed: bit for bit as contiguous: rows, strided, transposed, sliced, offset, expanded, "
        "3-d, short (7), single"
    )
    broken = {
        f.message.split(":")[0] for f in failures(run(routes, kernels.bias_by_row, "bias_gelu"))
    }
    assert broken == {"rows", "strided", "transposed", "sliced", "offset", "expanded", "3-d"}


def test_result_of_another_shape_is_told() -> None:
    outcome = case(lambda x, bias: kernels.bias_eager(x, bias)[0], "bf16", operator="bias_gelu")
    with pytest.raises(Exception, match=r"expected torch.bfloat16 \(1, "):
        accuracy.run(outcome)


def test_saturation_is_that_of_the_curve_with_the_neutral_argument() -> None:
    for kernel, operator, name in (
        (kernels.bias_eager, "bias_gelu", "x"), (kernels.geglu_eager, "geglu", "gate"),
    ):  # fmt: skip
        record = run(saturation_check, kernel, operator).fields["saturation"]
        assert record.zero_from == record.zero_needed_from
        assert f"; {name} from" in record.sentence


def test_regions_count_sums_and_gates() -> None:
    found = run(accuracy, kernels.bias_eager, "bias_gelu").fields["accuracy"]
    assert found.inputs == 2 << 16
    # Half the sums have a random bias of about 1: they leave the x that are next to 0.
    tiny = next(r for r in found.regions if r.region == "tiny").count
    assert tiny < 40_000
    gated = run(accuracy, kernels.geglu_eager, "geglu").fields["accuracy"]
    # |gate| < 2^-12: 115 binades of 128 patterns and the subnormals, both signs, finite up.
    tiny = next(r for r in gated.regions if r.region == "tiny").count
    assert tiny == pytest.approx(2 * 2 * 115 * 128, rel=0.05)


def test_a_bf16_sum_that_a_guard_sees_may_be_beyond_it() -> None:
    def guarded(x, bias):
        s = (x + bias).double()
        return torch.where(s <= -6.0, -0.0, bias_of(s)).to(x.dtype)

    def bias_of(s):
        return torch.copysign(kernels._erf(s.clamp(min=-200.0)), s)

    outcome = run(accuracy, guarded, "bias_gelu", contract="saturating")
    assert not failures(outcome), messages(outcome)


def test_infinity_is_right_where_the_rounded_intermediate_reaches_it() -> None:
    # f(2.109375) = 2.072...; times 1.63e38 it is 1.08 ULP below 2^128, and f rounds up.
    options = {"operator": "geglu", "contract": "tail_accurate"}
    outcome = accuracy.run(
        case(kernels.geglu_eager, replay=((0x4007, 0x7EF6), (0x3F80, 0x3F80)), **options)
    )
    assert not failures(outcome), messages(outcome)
    far = accuracy.run(
        case(lambda gate, up: gate * torch.inf, replay=((0x4007, 0x7E00),) * 2, **options)
    )
    assert failures(far)
