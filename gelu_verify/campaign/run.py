"""Run the shards of an exhaustive sweep, keep each in the ledger, merge them into one census."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import gelu_verify
from gelu_verify.campaign import executors, shard
from gelu_verify.campaign.ledger import Ledger, key_digest
from gelu_verify.errors import GeluVerifyError
from gelu_verify.job import Job
from gelu_verify.reference.certificate.source import source_hash

PATTERNS = 1 << 32
#: Enough shards that a lost one costs little and few enough that the ledger costs nothing.
_SHARD = {"cpu": 1 << 25, "cuda": 1 << 29}
_ATTEMPTS = 2

#: Called with the patterns done and the patterns in all.
OnShard = Callable[[int, int], None]


class CampaignStopped(GeluVerifyError):
    """A shard's worker died or hung more than once; what is done stays in the ledger."""


class CampaignInterrupted(GeluVerifyError):
    """Stopped by the user; the message says how to go on."""

    exit_status = 130


@dataclass(frozen=True)
class Plan:
    """How a campaign runs.

    ledger: the file; None for one in the user's cache folder, named by the campaign's key.
    scheduler: address of a Dask scheduler; None for processes of this machine.
    seconds: a shard that gives no answer for so long is taken to hang.
    """

    ledger: Path | None = None
    scheduler: str | None = None
    workers: int | None = None
    seconds: float = 600.0
    patterns: int = PATTERNS


def run(job: Job, plan: Plan, on_shard: OnShard) -> str:
    """Return the census (JSON, see ``exhaustive.transport``) of a job over all patterns of fp32."""
    from gelu_verify.exhaustive import transport
    from gelu_verify.exhaustive.census import Census

    key = campaign_key(job, plan)
    ledger = Ledger(plan.ledger or _default_path(key), key)
    shards = list(_shards(job, plan))
    try:
        _finish(job, plan, ledger, shards, on_shard)
        census = Census()
        for content in ledger.contents():
            census.merge(transport.loads(content))
    except KeyboardInterrupt:
        done = len(ledger.done())
        raise CampaignInterrupted(
            f"interrupted with {done} of {len(shards)} shards done, kept in {ledger.path}. "
            "Run the same command again to go on."
        ) from None
    finally:
        ledger.close()
    if census.patterns != plan.patterns:
        raise GeluVerifyError(
            f"coverage: got {census.patterns:,} inputs, expected {plan.patterns:,}. "
            f"Delete {ledger.path} and run again."
        )
    return transport.dumps(census)


def campaign_key(job: Job, plan: Plan) -> dict[str, str]:
    """Return all that a result depends on."""
    return {
        "gelu_verify": gelu_verify.__version__,
        "kernel": job.spec.target,
        "kernel source": _kernel_hash(job.spec.target),
        "function": f"{job.operator}:{job.via or 'direct'}:{job.formula}",
        "contract": hashlib.sha256(job.contract.model_dump_json().encode()).hexdigest()[:16],
        "device": _device_name(job.device),
        "libraries": ", ".join(f"{name} {_version(name)}" for name in ("torch", "triton")),
        "sweep": f"fp32, all {plan.patterns} patterns, shards of {_shard_size(job)}",
        "reference": source_hash(),
    }


def _default_path(key: dict[str, str]) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "gelu_verify" / f"{key_digest(key)}.sqlite"


def _kernel_hash(target: str) -> str:
    """Return the hash of the folder or file a kernel is written in; "" for a torch operator."""
    source = target.rpartition(":")[0]
    if target.startswith("torch.ops."):
        return ""
    if source.endswith(".py"):
        files = [Path(source)]
    else:
        found = importlib.util.find_spec(source)
        origin = Path(found.origin) if found and found.origin else Path(source)
        files = sorted(origin.parent.glob("*.py")) if origin.name == "__init__.py" else [origin]
    state = hashlib.sha256()
    for file in files:
        state.update(file.read_bytes() if file.is_file() else b"")
    return state.hexdigest()[:16]


def _device_name(device: str) -> str:
    if not device.startswith("cuda"):
        return "cpu"
    import torch

    return f"cuda {torch.cuda.get_device_name(torch.device(device))}"


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


def _shard_size(job: Job) -> int:
    return _SHARD[job.device.split(":")[0]]


def _shards(job: Job, plan: Plan) -> Iterator[tuple[int, int]]:
    size = _shard_size(job)
    for start in range(0, plan.patterns, size):
        yield start, min(start + size, plan.patterns)


def _executor(job: Job, plan: Plan) -> AbstractContextManager[Executor]:
    if plan.scheduler:
        return executors.cluster(plan.scheduler)
    return executors.local(plan.workers or executors.worker_count(job.device), job.device)


def _finish(
    job: Job, plan: Plan, ledger: Ledger, shards: list[tuple[int, int]], on_shard: OnShard
) -> None:
    """Run the shards that the ledger lacks; a pool that breaks is started again."""
    failures: dict[int, int] = {}
    while True:
        left = [number for number in range(len(shards)) if number not in ledger.done()]
        on_shard(_patterns(shards, ledger.done()), plan.patterns)
        if not left:
            return
        try:
            with _executor(job, plan) as pool:
                _run_pool(job, plan, ledger, shards, left, pool, on_shard)
        except (BrokenExecutor, TimeoutError) as error:
            # Which of the shards in work broke it is not known: the first not done is counted.
            first = min(n for n in range(len(shards)) if n not in ledger.done())
            failures[first] = failures.get(first, 0) + 1
            if failures[first] >= _ATTEMPTS:
                raise CampaignStopped(_stopped_message(shards[first], error)) from None


def _stopped_message(patterns: tuple[int, int], error: BaseException) -> str:
    what = "hung" if isinstance(error, TimeoutError) else "died"
    return (
        f"exhaustive sweep: a worker {what} {_ATTEMPTS} times at patterns "
        f"0x{patterns[0]:08X} to 0x{patterns[1] - 1:08X}"
    )


def _run_pool(
    job: Job,
    plan: Plan,
    ledger: Ledger,
    shards: list[tuple[int, int]],
    left: list[int],
    pool: Executor,
    on_shard: OnShard,
) -> None:
    job_json = job.model_dump_json()
    pending: dict[Future[str], int] = {
        pool.submit(shard.run, job_json, *shards[number]): number for number in left
    }
    heard = time.monotonic()
    while pending:
        finished, _ = wait(list(pending), timeout=1.0, return_when=FIRST_COMPLETED)
        if not finished and time.monotonic() - heard > plan.seconds:
            raise TimeoutError
        for future in finished:
            heard = time.monotonic()
            ledger.record(pending.pop(future), future.result())
            on_shard(_patterns(shards, ledger.done()), plan.patterns)


def _patterns(shards: list[tuple[int, int]], done: set[int]) -> int:
    return sum(stop - start for n, (start, stop) in enumerate(shards) if n in done)
