import pytest

from gelu_verify.config.settings import KernelEntry, Profile, Settings
from gelu_verify.errors import UsageError
from gelu_verify.gate import plan


def settings(*names, **more):
    return Settings(kernels=tuple(KernelEntry(kernel=name) for name in names), **more)


def test_inputs_that_once_failed_come_first():
    jobs = plan.jobs(settings("torch-erf", formats=("fp32", "fp64")))
    kinds = [bool(job.replay) for job in jobs]
    assert kinds == sorted(kinds, reverse=True)
    assert {job.format for job in jobs if job.replay} == {"fp32", "fp64"}
    assert all(job.comparable and job.examples == 20 for job in jobs if not job.replay)
    assert all(job.checks == ("accuracy",) for job in jobs if job.replay)


def test_nightly_draws_a_seed_and_more_examples():
    nightly = settings("torch-erf", profile=Profile.NIGHTLY)
    assert plan.fresh_seed(nightly) != plan.fresh_seed(nightly)
    assert plan.fresh_seed(settings("torch-erf")) == 0
    assert plan.fresh_seed(settings("torch-erf", profile=Profile.NIGHTLY, seed=5)) == 5
    assert {job.examples for job in plan.jobs(nightly) if not job.replay} == {500}


def test_examples_are_those_of_the_settings_when_there_are_some():
    jobs = plan.jobs(settings("torch-erf", profile=Profile.NIGHTLY, examples=0))
    assert {job.examples for job in jobs} == {0}


def test_same_kernel_twice_is_refused():
    with pytest.raises(UsageError, match="torch-erf gelu erf fp64 on cpu twice"):
        plan.jobs(settings("torch-erf", "torch-erf"))


def test_no_kernel_is_refused():
    with pytest.raises(UsageError, match="got no kernel"):
        plan.jobs(settings())


def test_every_device_has_its_jobs():
    jobs = plan.jobs(settings("torch-erf", formats=("bf16",), devices=("cpu", "cuda")))
    assert {job.device for job in jobs} == {"cpu", "cuda"}
