"""Train every arm from every seed, keep each run in the ledger, decide."""

from __future__ import annotations

import hashlib
import inspect
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gelu_verify import formats, operators, provenance
from gelu_verify.campaign import key
from gelu_verify.convergence import agreement, harmless, probes, sites, training, verdict
from gelu_verify.convergence import setting as setting_of
from gelu_verify.convergence.records import Arm, Convergence, Run
from gelu_verify.convergence.setting import Setting
from gelu_verify.convergence.sites import Site
from gelu_verify.convergence.tasks import Task
from gelu_verify.convergence.tasks import task as task_of
from gelu_verify.errors import GeluVerifyError, UnavailableError, UsageError, unknown_name
from gelu_verify.job import Job
from gelu_verify.kernels import loading
from gelu_verify.kernels.spec import KernelSpec
from gelu_verify.ledger import Ledger, key_digest

#: Called with the runs done, the runs in all, and what is trained next.
OnRun = Callable[[int, int, str], None]
#: Seeds a ledger has room for: a run's number is arm · this + seed.
MOST_SEEDS = 100_000
FORMATS = ("fp64", "fp32", "bf16", "fp16")


class ConvergenceInterrupted(GeluVerifyError):
    """Stopped by the user; the message says how to go on."""

    exit_status = 130


@dataclass(frozen=True)
class Experiment:
    """What is asked: a kernel (and one of its gradient), a task, seeds.

    job: the kernel's, with operator, formula, format and device resolved.
    function: the kernel itself where it is at hand and need not be loaded by name.
    """

    job: Job
    task: Task
    seeds: tuple[int, ...]
    backward: KernelSpec | None = None
    alpha: float = 0.05
    ledger: Path | None = None
    function: Callable[..., Any] | None = None


def run(experiment: Experiment, on_run: OnRun) -> Convergence:
    """Return the record of an experiment; what its ledger holds is not trained again.

    Raises KernelFailure where the kernel fails, LedgerRefused for a ledger of something else.
    """
    started = time.perf_counter()
    job, task = experiment.job, experiment.task
    _require(experiment)
    data = task.load()
    setting = Setting(
        task,
        data,
        job.formula,
        formats.get(job.format),
        torch.device(job.device),
        _site(experiment),
    ).on_device()
    sites.require_trainable(setting.kernel, setting.fmt, setting.device, job.spec.name)
    runs, trained = _trained(experiment, setting, data.digest(), on_run)
    decided = verdict.decide(runs, experiment.alpha)
    return Convergence(
        environment=provenance.environment(provenance.runtime(job.device)),
        name=job.spec.name,
        target=job.spec.target,
        backward=experiment.backward.target if experiment.backward else None,
        operator=job.operator,
        formula=job.formula,
        format=job.format,
        device=job.device,
        task=task.name,
        recipe=task.recipe(),
        data=data.source,
        data_digest=data.digest(),
        seeds=experiment.seeds,
        alpha=experiment.alpha,
        verdict=decided.verdict,
        reasons=decided.reasons,
        harmless=harmless.sentences(list(runs.values()), decided.verdict),
        endpoints=decided.endpoints,
        drift=decided.drift,
        gradients=decided.gradients,
        diverged=decided.diverged,
        runs=tuple(_lean(one) for one in runs.values()),
        seconds=time.perf_counter() - started,
        trained=trained,
    )


def _require(experiment: Experiment) -> None:
    """Raise a usage error for what cannot be trained with."""
    job = experiment.job
    if job.operator not in sites.OPERATORS:
        raise unknown_name("operator of converge", job.operator, sites.OPERATORS)
    if job.format not in FORMATS:
        raise unknown_name("format of converge", job.format, FORMATS)
    if experiment.backward is not None and job.operator != "gelu":
        raise UsageError(
            f"backward: got one for {job.operator}, expected it for gelu. Drop --backward."
        )
    if not 3 <= len(experiment.seeds) < MOST_SEEDS:
        raise UsageError(
            f"seeds: got {len(experiment.seeds)}, expected from 3 to {MOST_SEEDS - 1}."
        )
    if job.device.startswith("cuda") and not torch.cuda.is_available():
        raise UnavailableError(
            f"device: got {job.device}, expected a machine with a CUDA device. Use --device cpu."
        )


def _site(experiment: Experiment) -> Site:
    job, function = experiment.job, experiment.function
    if function is None:
        function = loading.load(job.spec, operators.arguments(job.operator))
    backward = None
    if experiment.backward is not None:
        backward = loading.load(experiment.backward, operators.arguments("gelu_backward"))
    return sites.of_kernel(job.operator, job.formula, function, backward)


def _trained(
    experiment: Experiment, setting: Setting, digest: str, on_run: OnRun
) -> tuple[verdict.Runs, int]:
    """Return the runs of all arms and seeds, a seed after the other, and how many were trained."""
    found = _key(experiment, digest)
    units = [(arm, seed) for seed in experiment.seeds for arm in Arm]
    runs: verdict.Runs = {}
    trained = 0
    with Ledger(experiment.ledger or _default_path(found), found) as ledger:
        for content in ledger.contents():
            kept = Run.model_validate_json(content)
            runs[kept.arm, kept.seed] = kept
        try:
            for index, (arm, seed) in enumerate(units):
                on_run(index, len(units), f"{arm.value}, seed {seed}")
                if (arm, seed) not in runs:
                    content = training.train(setting, arm, seed).model_dump_json()
                    ledger.record(list(Arm).index(arm) * MOST_SEEDS + seed, content)
                    # Read back, so that a run that goes on decides from the same digits.
                    runs[arm, seed] = Run.model_validate_json(content)
                    trained += 1
        except KeyboardInterrupt:
            raise ConvergenceInterrupted(
                f"interrupted with {len(ledger.done())} of {len(units)} runs done, kept in "
                f"{ledger.path}. Run the same command again to go on."
            ) from None
    on_run(len(units), len(units), "")
    return {unit: runs[unit] for unit in units}, trained


def _key(experiment: Experiment, digest: str) -> dict[str, str]:
    """Return all that a run depends on; how many seeds there are is not among it."""
    job, task = experiment.job, experiment.task
    found = key.of(job, f"{job.format}, task {task.name}, data {digest}, {task.recipe()}")
    found["trained by"] = _source_digest(task)
    found["threads"] = str(torch.get_num_threads())
    if experiment.backward is not None:
        own = job.model_copy(update={"spec": experiment.backward})
        found["backward"] = experiment.backward.target
        found["backward source"] = key.of(own, "")["kernel source"]
    return found


def _source_digest(task: Task) -> str:
    """Return 16 hex digits that tell versions of the code that trains, and of the model, apart."""
    ours = (sites, setting_of, training, probes, agreement, task_of)
    files = [str(module.__file__) for module in ours]
    state = hashlib.sha256()
    for file in (*files, inspect.getsourcefile(task.build)):
        state.update(Path(file).read_bytes() if file else b"")
    return state.hexdigest()[:16]


def _default_path(found: dict[str, str]) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "gelu_verify" / f"converge-{key_digest(found)}.sqlite"


def _lean(run: Run) -> Run:
    """Return a run without the vectors that only its drift is computed from."""
    probes = tuple(p.model_copy(update={"logits": (), "gradient": ()}) for p in run.probes)
    return run.model_copy(update={"probes": probes})
