"""The usual tests in a child: a kernel that ends it costs only itself, whatever it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from gelu_verify.job import Job, plan
from gelu_verify.kernels.listener import Limits, WorkerError
from gelu_verify.selftest import usual, usual_isolated

HOSTILE = str(Path(__file__).parents[1] / "kernels" / "hostile_kernels.py")


def job(name: str, target: str = HOSTILE) -> Job:
    return plan(f"{target}:{name}", format_names=("bf16",), depth="quick")[0]


def test_each_kernel_has_verdicts_when_some_end_their_child() -> None:
    jobs = [job(name) for name in ("hangs", "hoards", "sound")]
    hung, hoarding, sound = usual_isolated.run(jobs, Limits(seconds=4.0, memory=3 << 29))
    assert {row.test for row in hung} == set(usual.TESTS)
    assert {row.failure for row in hung} == {"no answer within 4 s"}
    assert not any(row.passes for row in (*hung, *hoarding))
    assert str(hoarding[0].failure).startswith("memory: the kernel's process grew to 1.")
    assert all(row.passes for row in sound)


def test_usage_error_travels_when_the_child_finds_it(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text("def f(x, y): pass")
    with pytest.raises(WorkerError, match="got signature") as caught:
        usual_isolated.run([job("f", str(path))], Limits())
    assert caught.value.exit_status == 2
