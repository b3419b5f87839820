"""Train every arm from every seed, keep each run in the ledger, decide."""

from __future__ import annotations

import hashlib
import inspect
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from gelu_verify import formats, operators, provenance
from gelu_verify.campaign import key as campaign_key
from gelu_verify.convergence import (
    agreement,
    catalogue,
    exact,
    harmless,
    probes,
    sites,
    tasks,
    training,
    verdict,
)
from gelu_verify.convergence import setting as setting_of
from gelu_verify.convergence.experiment import ConvergenceInterrupted, Experiment, OnRun
from gelu_verify.convergence.records import Arm, Convergence, Run
from gelu_verify.convergence.setting import Setting
from gelu_verify.convergence.tasks import Data, Task, layers
from gelu_verify.convergence.tasks import task as task_of
from gelu_verify.errors import UnavailableError, UsageError, unknown_name
from gelu_verify.kernels import loading
from gelu_verify.kernels.failure import KernelFailure
from gelu_verify.ledger import Ledger, key_digest
from gelu_verify.records import Environment

#: Called with the record as far as it is known, and the ledger's path, before any training.
OnStart = Callable[[Convergence, str], None]
#: Seeds a ledger has room for: a run's number is arm · this + seed.
MOST_SEEDS = 100_000
FORMATS = ("fp64", "fp32", "bf16", "fp16")
#: What is done in an arm where its name says too little: a kernel may crash there.
_DOING = {Arm.REFERENCE: "reference, then the kernel in its model"}


def _ignore(known: Convergence, ledger: str) -> None:
    return None


def run(
    experiment: Experiment,
    on_run: OnRun,
    on_start: OnStart = _ignore,
    function: Callable[..., Any] | None = None,
) -> Convergence:
    """Return the record of an experiment; what its ledger holds is not trained again.

    function: the kernel itself where it is at hand and need not be loaded by name.
    A kernel that fails is a verdict. Raises LedgerRefused for a ledger of something else.
    """
    started = time.perf_counter()
    task = _task(experiment)
    _require(experiment, task)
    data = task.load()
    known = _known(experiment, task, data)
    key = _key(experiment, task, known.data_digest)
    path = experiment.ledger or _default_path(key)
    on_start(known, str(path))
    try:
        setting = _setting(experiment, task, data, function)
        with _products_in_fp32(), Ledger(path, key) as ledger:
            runs, trained = _trained(experiment.seeds, setting, ledger, on_run)
    except KernelFailure as failure:
        return known.model_copy(update={"reasons": (f"the kernel failed: {failure}",)})
    decided = verdict.decide(runs, experiment.alpha)
    return Convergence.model_validate(
        {
            **dict(known),
            **vars(decided),
            "environment": _environment(experiment),
            "harmless": harmless.sentences(list(runs.values()), decided.verdict),
            "runs": tuple(_lean(one) for one in runs.values()),
            "seconds": time.perf_counter() - started,
            "trained": trained,
        }
    )


def _known(experiment: Experiment, task: Task, data: Data) -> Convergence:
    """Return the record before any training."""
    found = {
        "environment": _environment(experiment),
        "recipe": task.recipe(),
        "data": data.source,
        "data_digest": data.digest(),
    }
    return experiment.blank().model_copy(update=found)


def _environment(experiment: Experiment) -> Environment:
    return provenance.environment(provenance.runtime(experiment.job.device))


@contextmanager
def _products_in_fp32() -> Iterator[None]:
    """Keep torch from TF32, also where the user's settings allow it: the noise floor is fp32's.

    cuDNN's convolutions also from sums in any order, so that a run repeats its bits.
    """
    known, cudnn = torch.get_float32_matmul_precision(), torch.backends.cudnn
    switches = cudnn.allow_tf32, cudnn.deterministic
    torch.set_float32_matmul_precision("highest")
    cudnn.allow_tf32, cudnn.deterministic = False, True
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(known)
        cudnn.allow_tf32, cudnn.deterministic = switches


def _task(experiment: Experiment) -> Task:
    found = tasks.find(experiment.task)
    return replace(found, steps=experiment.steps) if experiment.steps else found


def _require(experiment: Experiment, task: Task) -> None:
    """Raise a usage error for what cannot be trained with."""
    job = experiment.job
    room = catalogue.ROOM[sites.get(task.operator).operator]
    if job.operator not in room:
        raise UsageError(
            f"task {task.name}: got a kernel of {job.operator}, expected {', '.join(room)}. "
            f"Use --task {catalogue.default(job.operator)}."
        )
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


def _setting(
    experiment: Experiment, task: Task, data: Data, function: Callable[..., Any] | None
) -> Setting:
    """Return what the arms share, with the kernel loaded, where it is trained."""
    job, backward = experiment.job, None
    if function is None:
        function = loading.load(job.spec, operators.arguments(job.operator))
    if experiment.backward is not None:
        backward = loading.load(experiment.backward, operators.arguments("gelu_backward"))
    place = sites.get(task.operator)
    site = place.of_kernel(job.operator, job.formula, function, backward)
    fmt, device = formats.get(job.format), torch.device(job.device)
    sites.require_trainable(place, site, fmt, device, job.spec.name)
    return Setting(task, data, job.formula, fmt, device, site).on_device()


def _trained(
    seeds: tuple[int, ...], setting: Setting, ledger: Ledger, on_run: OnRun
) -> tuple[verdict.Runs, int]:
    """Return the runs of all arms and seeds, a seed after the other, and how many were trained."""
    kept = (Run.model_validate_json(content) for content in ledger.contents())
    runs = {(one.arm, one.seed): one for one in kept}
    units = [(arm, seed) for seed in seeds for arm in Arm]
    trained = 0
    try:
        for index, (arm, seed) in enumerate(units):
            what = f"{_DOING.get(arm, arm.value)}, seed {seed}"
            on_run(index, len(units), what)
            if (arm, seed) not in runs:

                def on_point(step: int, index: int = index, what: str = what) -> None:
                    if step < setting.task.steps:
                        on_run(index + step / setting.task.steps, len(units), what)

                content = training.train(setting, arm, seed, on_point).model_dump_json()
                ledger.record(list(Arm).index(arm) * MOST_SEEDS + seed, content)
                # Read back, so that a run that goes on decides from the same digits.
                runs[arm, seed] = Run.model_validate_json(content)
                trained += 1
    except KeyboardInterrupt:
        raise ConvergenceInterrupted(len(ledger.done()), len(units), ledger.path) from None
    on_run(len(units), len(units), "")
    return {unit: runs[unit] for unit in units}, trained


def _key(experiment: Experiment, task: Task, digest: str) -> dict[str, str]:
    """Return all that a run depends on; how many seeds there are is not among it."""
    job = experiment.job
    found = campaign_key.of(job, f"{job.format}, task {task.name}, data {digest}, {task.recipe()}")
    found["trained by"] = _source_digest(task)
    found["threads"] = str(torch.get_num_threads())
    if experiment.backward is not None:
        own = job.model_copy(update={"spec": experiment.backward})
        found["backward"] = experiment.backward.target
        found["backward source"] = campaign_key.of(own, "")["kernel source"]
    return found


def _source_digest(task: Task) -> str:
    """Return 16 hex digits that tell versions of the code that trains, and of the model, apart."""
    ours = (exact, setting_of, training, probes, agreement, task_of, layers)
    files = [str(module.__file__) for module in ours]
    at_sites = sorted(Path(str(sites.__file__)).parent.glob("*.py"))
    state = hashlib.sha256()
    for file in (*files, *at_sites, inspect.getsourcefile(task.build)):
        state.update(Path(file).read_bytes() if file else b"")
    return state.hexdigest()[:16]


def _default_path(found: dict[str, str]) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "gelu_verify" / f"converge-{key_digest(found)}.sqlite"


def _lean(run: Run) -> Run:
    """Return a run without the vectors that only its drift is computed from."""
    probes = tuple(p.model_copy(update={"logits": (), "gradient": ()}) for p in run.probes)
    return run.model_copy(update={"probes": probes})
