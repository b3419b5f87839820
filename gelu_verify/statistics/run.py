"""Measure the gate's sampled decision about one kernel: its false alarms and its power.

It runs the kernel in this process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import Field

from gelu_verify import pipeline, provenance
from gelu_verify.errors import UnavailableError, UsageError
from gelu_verify.job import Job
from gelu_verify.kernels.subject import Subject
from gelu_verify.records import Environment
from gelu_verify.records.base import Record
from gelu_verify.statistics import sampling
from gelu_verify.statistics.change import DEFAULT, Setting
from gelu_verify.statistics.false_alarms import AlarmReport, Source, false_alarms
from gelu_verify.statistics.pool import Pool
from gelu_verify.statistics.power import PowerReport, power

#: Errors of each region in the pool; those of fp64 take a third of a millisecond each, in mpmath.
_POOL = 1 << 15
_POOL_FP64 = 1 << 11
#: The pool's inputs are drawn with a seed that no decision has.
_POOL_SEED = 2**62


class GateAlarms(Record):
    """The measured risk and power of the gate's decision about one kernel, from samples alone."""

    schema_version: int = 1
    environment: Environment
    kernel: str
    operator: str
    formula: str
    format: str
    device: str
    setting: Setting
    per_region: int = Field(description="inputs of each region in a sample")
    pool: int = Field(description="measured errors of each region that power is simulated from")
    alarms_from: str = Field(description="where the samples of the false alarms come from")
    alarms: AlarmReport
    power: PowerReport | None


def gate_alarms(
    job: Job,
    decisions: int = 1000,
    setting: Setting = DEFAULT,
    *,
    with_power: bool = True,
    function: Callable[..., Any] | None = None,
) -> GateAlarms:
    """Run the gate's sampled decision ``decisions`` times on a kernel that does not change.

    Every decision has two seeds of its own, from ``job.seed`` on. Below fp64 each sample is drawn
    and measured afresh; for fp64 it is drawn from a pool of measured errors. function: the kernel
    itself, where it is at hand. Raises UnavailableError, UsageError or KernelFailure.
    """
    subject = pipeline.prepared(job, function)
    if subject is None:
        raise UnavailableError(f"{job.spec.name}: got no gradient back to x, expected one.")
    if not isinstance(subject, Subject):
        raise UsageError(
            f"gate-alarms: got {job.operator}, expected an elementwise operator. The results of a "
            "fused one depend on each other; the gate compares them at the same inputs."
        )
    fresh = subject.fmt.bits < 64
    size, count = _POOL if fresh else _POOL_FP64, sampling.default_size(subject.fmt)
    pool = Pool.measured(subject, size, _POOL_SEED) if with_power or not fresh else Pool({})
    source = _measured(subject) if fresh else _pooled(pool, count)
    return GateAlarms(
        environment=provenance.environment(provenance.runtime(job.device)),
        kernel=job.spec.name,
        operator=job.operator,
        formula=job.formula,
        format=job.format,
        device=job.device,
        setting=setting,
        per_region=count,
        pool=size,
        alarms_from="inputs drawn afresh" if fresh else "drawn from the pool",
        alarms=false_alarms(source, decisions, setting, job.seed),
        power=power(pool, count, setting, seed=job.seed) if with_power else None,
    )


def _measured(subject: Subject) -> Source:
    return lambda seed: sampling.measure_sample(subject, seed).regions


def _pooled(pool: Pool, count: int) -> Source:
    import numpy as np

    return lambda seed: pool.drawn(count, np.random.default_rng(seed))
