"""How long calls take: measured last, of what can be timed by itself, and kept in the record."""

import time

import pytest
import torch
import triton.testing

from gelu_verify import pipeline, speed
from gelu_verify.records import FindingStatus, KernelResult
from gelu_verify.report import rows
from tests.cases import case, job
from tests.checks.fused.contract_cases import fused_case, sound

PAUSE = 2e-3


def slow(x):
    time.sleep(PAUSE)
    return torch.nn.functional.gelu(x)


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(speed, "_ELEMENTS", {"cpu": 1000})
    monkeypatch.setattr(speed, "_CPU_SECONDS", 0.05)


def test_speed_is_measured_last_and_kept_when_it_is_asked_for():
    seen = []
    gelu = torch.nn.functional.gelu
    done = pipeline.check(job("fp32", speed=True), lambda check, _: seen.append(check), gelu)
    assert seen[-1] == "speed"
    text = done.model_dump_json()
    assert KernelResult.model_validate_json(text).model_dump_json() == text
    assert "ns an element" in rows.speed(done.speed)
    without = pipeline.check(job("fp32"), lambda *_: None, gelu)
    assert without.speed is None


def test_the_median_of_all_calls_is_told_with_how_far_they_scatter():
    found = speed.measured(case(slow))
    # A call sleeps so long at least; how much longer, the machine decides.
    assert 1e6 * PAUSE <= found.low_us * 1e3 <= found.call_us * 1e3 <= found.high_us * 1e3
    assert found.call_us < 1e6
    assert (found.case, found.elements, found.moved_bytes) == ("n=1000", 1000, 4000)
    assert found.element_ns == pytest.approx(found.call_us)
    assert found.moved_gb_per_s == pytest.approx(4.0 / found.call_us)


def test_a_fused_kernel_is_timed_on_the_case_of_its_operator(monkeypatch):
    monkeypatch.setitem(speed._CASES, "linear_gelu", {"cpu": "m=8,k=4,n=2"})
    found = speed.measured(fused_case(sound))
    assert (found.case, found.elements) == ("m=8,k=4,n=2", 16)
    assert found.moved_bytes == 2 * (32 + 8 + 2 + 16)


def test_what_is_no_call_of_its_own_is_skipped_with_its_reason():
    made = case(torch.nn.functional.gelu, operator="gelu_backward", via="autograd")
    simulated = case(torch.nn.functional.gelu)
    simulated.subject.simulated = True
    for skipped, reason in [(made, "through autograd"), (simulated, "interpreter")]:
        outcome = speed.run(skipped)
        assert not outcome.fields
        assert [f.status for f in outcome.findings] == [FindingStatus.SKIPPED]
        assert reason in outcome.findings[0].message


def test_a_gpu_is_timed_by_triton_in_microseconds_after_a_warmup(monkeypatch):
    given = {}

    def do_bench(call, **options):
        given.update(options)
        call()
        return [1.0, 3.0]

    monkeypatch.setattr(triton.testing, "do_bench", do_bench)
    called = []
    assert speed._on_gpu(lambda: called.append(1))[0] == [1000.0, 3000.0]
    assert called
    assert given["warmup"] > 0
    assert given["return_mode"] == "all"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_copy_on_a_gpu_is_as_fast_as_its_memory_allows(monkeypatch):
    monkeypatch.setattr(speed, "_ELEMENTS", {"cuda": 1 << 26})
    made = case(torch.clone, "fp32")
    made.subject.device = torch.device("cuda")
    found = speed.measured(made)
    # Faster than any memory would be a time without the work, far slower one without the GPU.
    assert 50 < found.moved_gb_per_s < 10_000
