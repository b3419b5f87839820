"""What is launched past Triton's look-up is what Triton launches."""

import pytest

pytest.importorskip("triton", reason="Triton is not installed")

from reference_kernels.triton_fused import launch, relaunch
from tests.reference_kernels.subprocesses import compiling


@pytest.mark.slow
def test_known_launch_is_the_same_when_calls_alternate():
    found = compiling("-m", "tests.reference_kernels.relaunching")
    first = found["first"]
    assert [len(launches) for launches in first] == [1] * len(first)
    assert found["second"] == first
    assert found["third"] == first
    binaries = [launches[0][0] for launches in first]
    # The second differs from the first by its address alone, and Triton compiles it apart.
    assert len(set(binaries)) == len(binaries)


def test_nothing_is_kept_when_kernels_are_interpreted_or_tuned():
    assert launch.INTERPRETED
    assert relaunch.key_of(lambda: None, None, (), {}) is None


def test_all_is_forgotten_when_too_much_is_known(monkeypatch):
    monkeypatch.setattr(relaunch, "_MOST", 2)
    monkeypatch.setattr(relaunch, "_known", {})
    kernel = type("Kernel", (), {"arg_names": ("a", "SIZE")})
    for key in ((1,), (2,), (3,)):
        relaunch.keep(key, kernel, "binary", (0,), {"SIZE": 16})
    assert relaunch._known == {(3,): (kernel, "binary", (16,))}
