"""Provenance: where and with what results were made."""

import re
import subprocess
from datetime import datetime
from pathlib import Path

import gelu_verify
from gelu_verify import provenance


def test_environment_is_complete_when_recorded():
    found = provenance.environment({"instruction_set": "AVX2"})
    assert found.gelu_verify == gelu_verify.__version__
    assert datetime.fromisoformat(found.date).utcoffset().total_seconds() == 0
    assert {"torch", "mpmath", "numpy"} <= set(found.libraries)
    assert found.processor
    assert found.instruction_set == "AVX2"


def test_commit_is_gits_when_in_a_checkout():
    root = Path(gelu_verify.__file__).parents[1]
    if not (root / ".git").exists():
        assert provenance.environment({}).commit is None
        return
    done = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    expected = done.stdout.strip() if done.returncode == 0 else None
    assert provenance.environment({}).commit == expected
    assert expected is None or re.fullmatch("[0-9a-f]{40}", expected)


def test_commit_is_unknown_when_git_is_missing(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    found = provenance.environment({})
    assert (found.commit, found.dirty) == (None, None)


def test_runtime_tells_the_instruction_set_when_on_a_cpu():
    found = provenance.runtime("cpu")
    assert found["instruction_set"]
    assert "device" not in found
