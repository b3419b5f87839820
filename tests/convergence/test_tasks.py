import hashlib
import sys
import sysconfig
from pathlib import Path

import pytest
import torch

from gelu_verify import formats, operators
from gelu_verify.convergence import catalogue, sites, tasks, training
from gelu_verify.convergence.records import Arm
from gelu_verify.convergence.setting import Setting
from gelu_verify.errors import UsageError


def site_of(task):
    return sites.get(task.operator).eager("erf")


def needed(name):
    """Return a task; a test that needs its data is skipped without."""
    if name.startswith("digits"):
        pytest.importorskip("sklearn")
    return tasks.find(name)


def test_the_catalogue_is_that_of_the_tasks():
    assert {name: task.operator for name, task in tasks.TASKS.items()} == catalogue.TASKS
    assert set(catalogue.ROOM) == set(sites.PLACES)


@pytest.mark.parametrize("operator", operators.names())
def test_kernels_of_every_operator_have_a_task_by_default(operator):
    name = catalogue.default(operator)
    assert name.startswith("digits")
    assert operator in catalogue.ROOM[tasks.find(name).operator]


@pytest.mark.parametrize("name", ["digits-gated", "digits-norm", "digits-attention", "digits-conv"])
def test_a_model_of_the_reference_arm_reads_nine_digits_of_ten(name):
    task = needed(name)
    place = sites.get(task.operator)
    cpu = torch.device("cpu")
    setting = Setting(task, task.load(), "erf", formats.get("fp32"), cpu, place.eager("erf"))
    assert training.train(setting, Arm.REFERENCE, 0).accuracies[-1] > 0.9


@pytest.mark.parametrize("name", catalogue.TASKS)
def test_models_give_logits_of_the_targets_shape(name):
    task = needed(name)
    data = task.load()
    assert len(data.train_inputs) == len(data.train_targets) > 1000
    logits = task.build(site_of(task))(data.valid_inputs[:3])
    assert logits.shape[:-1] == data.valid_targets[:3].shape
    assert int(data.valid_targets.max()) < logits.shape[-1]
    assert data.digest() == task.load().digest()


def test_text_is_the_standard_librarys_and_its_hash_is_in_the_source():
    data = tasks.find("python-gpt").load()
    first = min(Path(sysconfig.get_path("stdlib")).glob("*.py")).read_bytes()[:64]
    assert bytes(data.train_inputs[0].tolist()) == first
    assert torch.equal(data.train_inputs[0, 1:], data.train_targets[0, :-1])
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    text = b"".join(path.read_bytes() for path in files)[: 4 << 20]
    assert hashlib.sha256(text).hexdigest() in data.source


@pytest.mark.parametrize("name", ["python-gpt", "python-gpt-gated", "python-gpt-norm"])
def test_a_gpt_does_not_see_the_byte_it_predicts(name):
    task = tasks.find(name)
    model = task.build(site_of(task))
    codes = torch.randint(256, (1, 64))
    other = codes.clone()
    other[0, 40:] = 7
    with torch.no_grad():
        same = torch.isclose(model(codes), model(other), atol=1e-6).all(-1)[0]
    assert same[:40].all()
    assert not same[40:].any()


def test_the_byte_after_a_window_is_the_one_that_follows():
    data, text = tasks.find("python-next").load(), tasks.find("python-gpt").load()
    assert bytes(data.train_inputs[1].tolist()) == bytes(text.train_inputs[0, 8:24].tolist())
    assert data.train_targets[1] == text.train_inputs[0, 24]
    assert data.train_targets[6] == text.train_inputs[1, 0]


def test_a_users_task_is_found_by_name():
    from tests.convergence.tiny import TASK

    assert tasks.find("tests.convergence.tiny:TASK") is TASK
    assert "tests.convergence.tiny" in sys.modules


@pytest.mark.parametrize("name", ["digit-mlp", "tests.convergence.tiny:_data"])
def test_what_is_no_task_is_refused(name):
    with pytest.raises(UsageError, match="task"):
        tasks.find(name)
