import hashlib
import sys
import sysconfig
from pathlib import Path

import pytest
import torch

from gelu_verify.convergence import sites, tasks
from gelu_verify.errors import UsageError

SITE = sites.at_activation(sites.eager("erf"))


@pytest.mark.parametrize("name", tasks.TASKS)
def test_models_give_logits_of_the_targets_shape(name):
    task = tasks.find(name)
    if name.startswith("digits"):
        pytest.importorskip("sklearn")
    data = task.load()
    assert len(data.train_inputs) == len(data.train_targets) > 1000
    logits = task.build(SITE)(data.valid_inputs[:3])
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


def test_the_gpt_does_not_see_the_byte_it_predicts():
    model = tasks.find("python-gpt").build(SITE)
    codes = torch.randint(256, (1, 64))
    other = codes.clone()
    other[0, 40:] = 7
    with torch.no_grad():
        same = torch.isclose(model(codes), model(other), atol=1e-6).all(-1)[0]
    assert same[:40].all()
    assert not same[40:].any()


def test_a_users_task_is_found_by_name():
    from tests.convergence.tiny import TASK

    assert tasks.find("tests.convergence.tiny:TASK") is TASK
    assert "tests.convergence.tiny" in sys.modules


@pytest.mark.parametrize("name", ["digit-mlp", "tests.convergence.tiny:_data"])
def test_what_is_no_task_is_refused(name):
    with pytest.raises(UsageError, match="task"):
        tasks.find(name)
