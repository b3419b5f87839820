"""Records: immutable, free of contradictions, the same after a trip through JSON."""

import json
import math

import pytest
from pydantic import ValidationError

from gelu_verify import records
from gelu_verify.errors import ContractBroken
from gelu_verify.records import Results, Saturation, Status
from gelu_verify.report import schema
from tests.builders import environment, finding, result, results

RESULTS = next(path for path, model in schema.SCHEMAS.items() if model is Results)


@pytest.mark.parametrize("path", schema.SCHEMAS, ids=lambda path: path.name)
def test_schema_is_the_committed_one_when_generated(path):
    model = schema.SCHEMAS[path]
    text = json.dumps(model.model_json_schema(), indent=2, sort_keys=True) + "\n"
    assert path.read_text(encoding="utf-8") == text, "run: make schema"


def test_schema_names_every_status_when_read():
    committed = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert committed["$defs"]["Status"]["enum"] == [
        "passed", "failed", "known_issue", "crashed", "timed_out", "unavailable",
    ]  # fmt: skip
    assert {"schema_version", "environment", "kernels"} <= set(committed["properties"])


def test_results_are_the_same_when_written_and_read():
    saved = results(result(Status.FAILED, finding("accuracy", "failed", "m")))
    assert Results.model_validate_json(saved.model_dump_json()) == saved
    assert json.loads(saved.model_dump_json())["schema_version"] == 1


def test_nan_and_infinity_survive_when_written_as_json():
    record = Saturation(
        zero_from=-math.inf, zero_needed_from=-1.0, zero_cost_absolute=math.nan, zero_cost_ulp=0.0,
        identity_from=None, identity_needed_from=1.0, identity_cost_ulp=math.inf, sentence="s",
    )  # fmt: skip
    text = record.model_dump_json()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    back = Saturation.model_validate_json(text)
    assert (back.zero_from, back.identity_cost_ulp) == (-math.inf, math.inf)
    assert math.isnan(back.zero_cost_absolute)


def test_record_cannot_be_changed_when_built():
    with pytest.raises(ValidationError):
        environment().commit = "other"
    with pytest.raises(ValidationError):
        records.Finding(check="a", status="failed", message="m", colour="red")


@pytest.mark.parametrize("status", [Status.PASSED, Status.KNOWN_ISSUE])
def test_result_is_refused_when_it_holds_without_evidence(status):
    with pytest.raises(ValidationError, match="needs figures"):
        result(status, special=False)


def test_class_count_is_refused_when_it_is_zero():
    point = records.Point(inputs={}, bits={}, exact="0", actual="0", actual_bits="0", error_ulp=0)
    with pytest.raises(ValidationError):
        records.ClassCount(name="collapse", count=0, first=point, worst=point)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([], 3),
        ([Status.UNAVAILABLE], 3),
        ([Status.PASSED], 0),
        ([Status.KNOWN_ISSUE], 0),
        ([Status.PASSED, Status.UNAVAILABLE], 0),
        ([Status.PASSED, Status.FAILED], 1),
        ([Status.PASSED, Status.CRASHED], 1),
        ([Status.KNOWN_ISSUE, Status.TIMED_OUT], 1),
        ([Status.UNAVAILABLE, Status.FAILED], 1),
    ],
)
def test_exit_status_follows_when_kernels_end_so(statuses, expected):
    assert results(*(result(status) for status in statuses)).exit_status == expected


def test_error_names_each_failure_when_raised():
    failing = results(
        result(Status.PASSED),
        result(Status.FAILED, finding("a", "failed", "first"), finding("b", "failed", "second")),
        result(Status.UNAVAILABLE, finding("loading", "skipped", "no such device")),
    )
    with pytest.raises(ContractBroken) as caught:
        failing.raise_if_failed()
    assert str(caught.value).splitlines() == [
        "k gelu bf16: failed: first",
        "k gelu bf16: failed: second",
        "k gelu bf16: unavailable: no such device",
    ]
    assert isinstance(caught.value, AssertionError)


def test_error_is_raised_when_nothing_was_checked():
    with pytest.raises(ContractBroken, match="nothing could be checked"):
        results().raise_if_failed()


def test_results_are_returned_when_all_held():
    passed = results(result(Status.PASSED))
    assert passed.raise_if_failed() is passed
