"""Run the shards of an exhaustive sweep, keep each in the ledger, merge them into one census."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gelu_verify.campaign import executors, key, shard
from gelu_verify.errors import GeluVerifyError
from gelu_verify.job import Job
from gelu_verify.kernels.failure import KernelFailure
from gelu_verify.ledger import Ledger, key_digest

PATTERNS = 1 << 32
#: Patterns a shard by default: a lost one costs little, and the ledger costs nothing.
_SHARD = {"cpu": 1 << 25, "cuda": 1 << 31}
_ATTEMPTS = 2
_POLL_SECONDS = 0.1
_GIB = 1 << 30

#: Called with the patterns done and the patterns in all.
OnShard = Callable[[int, int], None]


class CampaignStopped(GeluVerifyError):
    """A kernel raised, or its worker died or hung more than once; the ledger keeps what is done.

    timed_out: whether it hung.
    """

    def __init__(self, message: str, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class CampaignInterrupted(GeluVerifyError):
    """Stopped by the user; the message says how to go on."""

    exit_status = 130


@dataclass(frozen=True)
class Plan:
    """How a campaign runs.

    ledger: the file; None for one in ``folder``, named by the campaign's key.
    folder: of ledgers; None for the user's cache.
    scheduler: address of a Dask scheduler; None for processes of this machine.
    workers: processes of this machine; None for one a core, or one for a GPU.
    seconds: a campaign of which no shard gives an answer for so long is taken to hang.
    memory: bytes a process of this machine may hold resident.
    first, patterns: which of them; fewer than all only for tests.
    shard: patterns a shard, a power of two; None for what suits the device.
    """

    ledger: Path | None = None
    folder: Path | None = None
    scheduler: str | None = None
    workers: int | None = None
    seconds: float = 600.0
    memory: int = 16 * _GIB
    first: int = 0
    patterns: int = PATTERNS
    shard: int | None = None

    def shards(self, device: str) -> list[tuple[int, int]]:
        """Return the first pattern of every shard and the one after its last."""
        size = self.shard_size(device)
        end = self.first + self.patterns
        return [(start, min(start + size, end)) for start in range(self.first, end, size)]

    def shard_size(self, device: str) -> int:
        """Return how many patterns a shard has on a device."""
        return self.shard or _SHARD[device.partition(":")[0]]


def run(job: Job, plan: Plan, on_shard: OnShard) -> str:
    """Return the census (JSON, see ``exhaustive.transport``) of a job over all 2^32 patterns.

    Those of fp32, or the pairs of two 16-bit patterns (``campaign.pair_shard``).
    """
    from gelu_verify.exhaustive import transport
    from gelu_verify.exhaustive.census import Census

    found = campaign_key(job, plan)
    ledger = Ledger(plan.ledger or _default_path(found, plan.folder), found)
    shards = plan.shards(job.device)
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


def require_ledger(job: Job, plan: Plan) -> None:
    """Raise LedgerRefused now, not after the quick check, if ``run`` would refuse its ledger."""
    found = campaign_key(job, plan)
    path = plan.ledger or _default_path(found, plan.folder)
    if path.exists() or (plan.ledger and not path.parent.is_dir()):
        Ledger(path, found).close()


def run_here(job: Job, function: Callable[..., Any], plan: Plan, on_shard: OnShard) -> str:
    """Return the census of a function that is at hand, measured in this process, without a ledger.

    function: of ``x``, or ``(dy, x)``; for a backward through autograd the kernel itself.
    """
    from gelu_verify.exhaustive import transport
    from gelu_verify.exhaustive.census import Census

    census = Census()
    called = shard.as_called(job, function)
    for start, stop in plan.shards(job.device):
        on_shard(start - plan.first, plan.patterns)
        try:
            shard.measure_shard(job, called, start, stop, census)
        except KernelFailure as error:
            raise CampaignStopped(_raised_message((start, stop), error)) from error
    on_shard(plan.patterns, plan.patterns)
    return transport.dumps(census)


def campaign_key(job: Job, plan: Plan) -> dict[str, str]:
    """Return all that a result depends on."""
    size = plan.shard_size(job.device)
    return key.of(
        job, f"{job.format}, {plan.patterns} patterns from {plan.first}, shards of {size}"
    )


def _default_path(found: dict[str, str], folder: Path | None) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return (folder or cache / "gelu_verify") / f"{key_digest(found)}.sqlite"


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
        except _interruptions() as error:
            # Which of the shards in work broke it is not known: the first not done is counted.
            first = min(n for n in range(len(shards)) if n not in ledger.done())
            failures[first] = failures.get(first, 0) + 1
            if failures[first] >= _ATTEMPTS:
                hung = isinstance(error, TimeoutError)
                what = "hung" if hung else "died"
                message = f"a worker {what} {_ATTEMPTS} times at {_shown(shards[first])}"
                raise CampaignStopped(f"exhaustive sweep: {message}", hung) from None


def _interruptions() -> tuple[type[BaseException], ...]:
    return (TimeoutError, *executors.losses())


def _raised_message(patterns: tuple[int, int], error: KernelFailure) -> str:
    return f"exhaustive sweep: the kernel failed at {_shown(patterns)}: {error}"


def _shown(patterns: tuple[int, int]) -> str:
    return f"patterns 0x{patterns[0]:08X} to 0x{patterns[1] - 1:08X}"


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
        finished, _ = wait(list(pending), timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
        _require_memory(plan, pool)
        if not finished and time.monotonic() - heard > plan.seconds:
            raise TimeoutError
        for future in finished:
            heard = time.monotonic()
            number = pending.pop(future)
            try:
                content = future.result()
            except KernelFailure as error:
                message = _raised_message(shards[number], error)
                raise CampaignStopped(message) from None
            ledger.record(number, content)
            on_shard(_patterns(shards, ledger.done()), plan.patterns)


def _require_memory(plan: Plan, pool: Executor) -> None:
    resident = executors.largest(pool)
    if resident > plan.memory:
        raise CampaignStopped(
            f"exhaustive sweep: memory: a worker grew to {resident / _GIB:.1f} GiB, "
            f"limit {plan.memory / _GIB:.1f} GiB"
        )


def _patterns(shards: list[tuple[int, int]], done: set[int]) -> int:
    return sum(stop - start for n, (start, stop) in enumerate(shards) if n in done)
