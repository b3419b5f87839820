"""What a worker does: measure one shard of patterns and return its census as text."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from gelu_verify.campaign import pair_shard
from gelu_verify.campaign.call import called
from gelu_verify.job import Job

#: The most patterns that a call of the kernel takes. On a CPU its input and output stay in the
#: cache, and no temporary is larger than a few MiB; one more would be another program, as long as a
#: full one, in Triton's interpreter. On a GPU a call must fill the chip, with the one before.
_PER_CALL = {"cpu": 1 << 18, "cuda": (1 << 29) + 1}


def run(job_json: str, start: int, stop: int) -> str:
    """Run the kernel on patterns ``start`` to ``stop - 1`` and return the census as JSON."""
    from gelu_verify.exhaustive import transport
    from gelu_verify.exhaustive.census import Census

    job = Job.model_validate_json(job_json)
    census = Census()
    function = _function(job_json)
    measure_shard(job, function, start, stop, census)
    return transport.dumps(census)


@cache
def _function(job_json: str) -> Callable[..., Any]:
    """Load the kernel once a process."""
    import torch

    job = Job.model_validate_json(job_json)
    if job.device == "cpu":
        torch.set_num_threads(1)  # the shards are what runs in parallel
    return as_called(job, load(job))


def load(job: Job) -> Callable[..., Any]:
    """Return the kernel's own function."""
    from gelu_verify import operators
    from gelu_verify.kernels import loading

    called_as = operators.get("gelu" if job.via else job.operator)
    return loading.load(job.spec, called_as.arguments)


def as_called(job: Job, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what the job calls: the function, or its gradient."""
    from gelu_verify.kernels.subject import through_autograd

    return through_autograd(function) if job.via else function


def measure_shard(
    job: Job, function: Callable[..., Any], start: int, stop: int, census: Any
) -> None:
    """Add the patterns from ``start`` to ``stop - 1`` to a census, some at a time."""
    if pair_shard.is_of_pairs(job):
        pair_shard.measure_shard(job, function, start, stop, census)
        return
    import torch

    from gelu_verify import operators
    from gelu_verify.exhaustive.engines import engine_for
    from gelu_verify.exhaustive.inputs import consecutive_bits
    from gelu_verify.exhaustive.measuring import Pass
    from gelu_verify.exhaustive.settling import EnginePass

    device = torch.device(job.device)
    operator = operators.get(job.operator)
    general = Pass(operator, job.formula, job.contract, census)
    measuring = EnginePass(general, engine_for(general, device))
    per_call = _PER_CALL[device.type]
    first = start
    while first < stop:
        # One element before, for its monotonicity, except where the sign changes.
        lead = 1 if first % (1 << 31) else 0
        count = min(per_call, stop - first + lead)
        bits = consecutive_bits(first - lead, count, device)
        measuring.add(first, _call(function, operator.derivative, bits), lead)
        first += count - lead
    measuring.finish()


def _call(function: Callable[..., Any], derivative: int, bits: Any) -> Any:
    """Return the kernel's results (N,) for patterns; dy = 1 for a backward."""
    import torch

    x = bits.view(torch.float32)
    return called(function, (torch.ones_like(x), x) if derivative else (x,), like=x)
