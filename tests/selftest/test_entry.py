"""Declarations: the record on a function, and the catalogue they make."""

import re

import pytest
from pydantic import ValidationError

from gelu_verify import checks, formats, operators
from gelu_verify.checks import fused
from gelu_verify.errors import UsageError
from gelu_verify.kernels import loading
from gelu_verify.records import NAMED_TEST
from gelu_verify.selftest import catalogue, usual
from gelu_verify.selftest.entry import Defect, Kind, defect, sound

DEFECTS, SOUNDS = catalogue.defects(), catalogue.sounds()


def test_record_is_left_on_the_function_when_a_defect_is_declared():
    @defect(Kind.TAIL, report="a/b#1", rejected_by={"accuracy": ""}, formats=("fp64",))
    def loses_all(x):
        """Loses
        all."""
        return x

    entry = loses_all.entry
    assert entry.summary == "Loses all."
    assert entry.name.endswith("loses-all")
    assert [job.format for job in entry.jobs("cpu", seed=3)] == ["fp64"]
    assert next(entry.jobs("cpu", seed=3)).seed == 3
    assert loses_all(1) == 1


def test_declaration_is_refused_when_no_check_is_stated():
    with pytest.raises(ValidationError, match="rejected_by"):
        defect(Kind.TAIL, report="a/b#1", rejected_by={})(lambda x: x)


def test_gradient_is_a_job_of_its_own_when_it_is_asked_for():
    @sound(gradient="too", formats=("fp32",), contract="tail_accurate")
    def kernel(x):
        """Is right."""
        return x

    assert [job.via for job in kernel.entry.jobs("cpu")] == [None, "autograd"]
    assert {job.contract.name for job in kernel.entry.jobs("cpu")} == {"tail_accurate"}


def test_catalogue_is_refused_when_a_name_is_unknown():
    with pytest.raises(UsageError, match=r"Did you mean one-plus-erf\?"):
        catalogue.chosen(["one-plus-erff"])
    assert len(catalogue.chosen([])) == len(DEFECTS) + len(SOUNDS)


@pytest.mark.parametrize("entry", [*DEFECTS, *SOUNDS], ids=lambda entry: entry.name)
def test_entry_can_be_run_and_says_what_it_is(entry):
    loading.load(entry.spec, operators.arguments(entry.operator))
    assert entry.summary.endswith(".")
    assert all(formats.get(name) for name in entry.formats)
    assert list(entry.jobs("cpu"))


@pytest.mark.parametrize("entry", DEFECTS, ids=lambda entry: entry.name)
def test_defect_names_a_report_and_checks_that_exist(entry: Defect):
    assert re.fullmatch(r"([\w.-]+/[\w.-]+#\d+)?", entry.report)
    assert set(entry.rejected_by) <= {*checks.CHECKS, *fused.CHECKS}


def test_named_usual_test_exists():
    assert NAMED_TEST in usual.TESTS


def test_an_unknown_name_is_one_short_line_with_the_nearest():
    with pytest.raises(
        UsageError, match=r"one of \d+ names\. Did you mean tanh-for-erf\?"
    ) as error:
        catalogue.chosen(["tanh-for-erff"])
    assert len(str(error.value)) < 100
