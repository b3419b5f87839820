"""``gelu-verify converge``."""

import json

import pytest

from gelu_verify.cli import converge as converge_command
from gelu_verify.convergence import catalogue
from gelu_verify.convergence.records import Convergence
from tests.cli.command import here

TASK = ("--task", "tests.convergence.tiny:TASK", "--seeds", "3")


@pytest.fixture
def converge(capsys, monkeypatch, tmp_path):
    def run(*words, how=("--in-process",)):
        words = (*TASK, *how, *words, "--ledger", tmp_path / "l.sqlite")
        return here(capsys, monkeypatch, "converge", *words)

    return run


def test_equivalent_is_0_with_record_and_markdown(converge, tmp_path):
    record, text = tmp_path / "r.json", tmp_path / "r.md"
    done = converge("torch-erf", "--json", record, "--markdown", text)
    assert done.status == 0
    assert "EQUIVALENT" in done.out
    found = Convergence.model_validate_json(record.read_text())
    assert found.seeds == (0, 1, 2)
    assert found.name == "torch-erf"
    assert "## What does not matter here" in text.read_text()
    assert "| final loss |" in text.read_text()


def test_different_is_1(converge):
    done = converge("tests.convergence.kernels:nan_backward", "--json", "-")
    assert done.status == 1
    assert json.loads(done.out)["verdict"] == "different"


def test_not_enough_seeds_is_3_with_how_many_are_needed(converge):
    done = converge("reference_kernels.training_faults:missing_term_backward")
    assert done.status == 3
    assert "seeds would decide" in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("torch-erf", "--format", "fp8_e5m2"), "format of converge: got 'fp8_e5m2'"),
        (("torch-geglu",), "task ring: got a kernel of geglu"),
    ],
)
def test_what_cannot_be_trained_with_is_2(converge, words, said):
    done = converge(*words)
    assert done.status == 2
    assert said in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("kernel", "task"),
    [
        ("torch-erf", "digits-mlp"),
        ("triton-geglu", "digits-gated"),
        ("torch-sdpa", "digits-attention"),
    ],
)
def test_the_task_is_by_default_the_first_with_room_for_the_kernel(
    capsys, monkeypatch, kernel, task
):
    asked = []

    def note(experiment, on_run):
        asked.append(experiment)
        return experiment.blank()

    monkeypatch.setattr(converge_command, "_here", note)
    here(capsys, monkeypatch, "converge", kernel, "--in-process")
    assert [one.task for one in asked] == [task]


def test_the_help_names_every_task(capsys, monkeypatch):
    text = " ".join(here(capsys, monkeypatch, "converge", "--help").out.replace("│", " ").split())
    assert ", ".join(catalogue.TASKS) in text.replace("- ", "-")


def test_what_the_child_finds_wrong_is_one_line(converge):
    done = converge("torch-erf", "--task", "digit-mlp", how=())
    assert done.status == 2
    assert "Did you mean digits-mlp?" in done.err
    assert done.err.count("\n") == 1


def test_a_kernel_that_raises_is_1_with_its_words(converge):
    done = converge("tests.convergence.kernels:raises")
    assert done.status == 1
    assert "CRASHED" in done.out
    assert "the kernel failed: RuntimeError: no such size" in done.out
