"""A hunt over cases finds faults of fused kernels that the fixed list of a check misses."""

import pytest
import torch

from gelu_verify import formats
from gelu_verify.checks.fused import bound, gradient
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.hunt.cases.evaluation import CaseEvaluator
from gelu_verify.hunt.cases.search import CaseSearch
from gelu_verify.hunt.cases.space import Space
from gelu_verify.hunt.records import HuntRequest, HuntStatus
from gelu_verify.hunt.run import hunt
from gelu_verify.inputs.problems import Problem, parse
from gelu_verify.job import plan
from gelu_verify.kernels.subject import Callee
from gelu_verify.operators import fused
from reference_kernels import torch_fused
from tests.cases import failures
from tests.hunt import kernels

SECONDS = 60.0


class _Enough(Exception):
    pass


def _request(function, fmt, operator="linear_gelu", seconds=SECONDS, **options):
    name = f"tests.hunt.kernels:{function.__name__}"
    jobs = plan(name, operator=operator, format_names=(fmt,), **options)
    return HuntRequest(job=jobs[0], cases=True, seconds=seconds)


def _case(function, fmt, **options):
    job = _request(function, fmt, **options).job
    return FusedCase(job, Callee("f", "erf", formats.get(fmt), torch.device("cpu"), function))


def _first_broken(function, fmt, limit=1.0, seed=0):
    """Return part and text of the first case whose ratio is above a limit; fail without one."""
    evaluator = CaseEvaluator(_case(function, fmt))

    def stop_when_found():
        if any(worst.ratios.max_ratio > limit for worst in evaluator.worst.values()):
            raise _Enough

    with pytest.raises(_Enough):
        CaseSearch(evaluator, seed, SECONDS, stop_when_found).run()
    part, worst = max(evaluator.worst.items(), key=lambda item: item[1].score)
    return part, str(worst.problem)


@pytest.mark.parametrize(
    ("function", "fmt", "part", "limit", "check"),
    [
        (kernels.linear_gelu_adds_a_block_twice, "bf16", "result", 1.0, bound),
        # Twice the bound: torch's own erf in fp32 breaks it, too, by a little.
        (kernels.linear_gelu_in_tf32_when_large, "fp32", "result", 2.0, bound),
        (kernels.linear_gelu_loses_a_row_of_its_gradient, "bf16", "d", 1.0, gradient),
    ],
)
def test_fault_is_found_when_the_standard_list_misses_it(function, fmt, part, limit, check):
    listed = check.run(_case(function, fmt, depth="standard"))
    assert all(f.status != "failed" or "bound" not in f.message or fmt == "fp32"
               for f in listed.findings)  # fmt: skip
    found, text = _first_broken(function, fmt, limit)
    assert found.startswith(part)
    replayed = check.run(_case(function, fmt, cases=(text,)))
    assert failures(replayed)


@pytest.mark.parametrize("name", fused.NAMES)
def test_every_drawn_case_can_be_written_and_read_when_an_operator_is_hunted(name):
    from random import Random

    operator, random = fused.get(name), Random(1)
    space = Space(operator)
    for turn in range(60):
        problem = space.drawn(random, space.needed[turn % len(space.needed)])
        for one in (problem, space.changed(problem, random)):
            assert parse(str(one), operator) == one
            assert space.work(dict(one.dims)) <= 2**21


@pytest.mark.parametrize("name", ["linear_gelu", "layernorm_gelu", "conv_relu_pool", "attention"])
def test_empty_cases_raise_nothing_when_they_are_hunted(name):
    function = getattr(torch_fused, name)
    evaluator = CaseEvaluator(_case(function, "bf16", operator=name))
    space = Space(evaluator.case.operator)
    for dim in space.needed:
        sizes = {n: 0 if n == dim else 3 for n in space.needed}
        evaluator.score(Problem(space.fitting(sizes, dim), seed=3))
    assert evaluator.run == evaluator.judged + evaluator.refused == len(space.needed)


def test_every_small_size_comes_up_when_a_dimension_is_swept():
    operator, seen = fused.get("linear_gelu"), set()
    from random import Random

    space, random = Space(operator), Random(3)
    for _ in range(193 + 64):
        seen.add(dict(space.drawn(random, "k").dims)["k"])
    assert set(range(193)) <= seen
    assert max(seen) > 1000


def test_cases_are_equal_when_the_seed_is():
    def drawn(seed):
        evaluator, texts = CaseEvaluator(_case(kernels.linear_gelu, "bf16")), []

        def note():
            texts.append(str(evaluator.at))
            if len(texts) == 30:
                raise _Enough

        with pytest.raises(_Enough):
            CaseSearch(evaluator, seed, SECONDS, note).run()
        return texts

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_every_part_is_within_its_bound_when_a_sound_kernel_is_hunted():
    request = _request(kernels.linear_gelu, "bf16", seconds=1.5)
    result = hunt(request, lambda _: None, kernels.linear_gelu)
    assert result.status is HuntStatus.FINISHED
    assert list(result.stages) == ["start", "steps", "targeted"]
    assert sum(result.stages.values()) == result.measured > 0
    assert {found.part for found in result.cases} == {"result", "dx", "dweight", "dbias"}
    assert all(found.ratio <= 1 and found.message is None for found in result.cases)


def test_hypothesis_draws_cases_that_can_be_replayed():
    evaluator, texts = CaseEvaluator(_case(kernels.linear_gelu, "bf16")), []
    search = CaseSearch(evaluator, 0, 3.0, lambda: texts.append(str(evaluator.at)))
    search._climb("k", 0)
    assert texts
    assert all(str(parse(text, evaluator.case.operator)) == text for text in texts)


def test_hunt_is_crashed_and_names_the_case_when_the_kernel_raises():
    def raises(x, weight, bias):
        raise IndexError("out of range")

    result = hunt(_request(kernels.linear_gelu, "bf16"), lambda _: None, raises)
    assert result.status is HuntStatus.CRASHED
    assert "out of range (case m=" in result.message


def test_hunt_is_unavailable_when_the_kernel_refuses_all():
    def refuses(x, weight, bias):
        raise ValueError("x: expected something else")

    request = _request(kernels.linear_gelu, "bf16", seconds=0.5)
    result = hunt(request, lambda _: None, refuses)
    assert result.status is HuntStatus.UNAVAILABLE
    assert "refused all" in result.message
