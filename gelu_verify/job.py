"""One unit of work: kernel, operator, formula, format, contract, device. Loads no framework."""

from __future__ import annotations

import shlex

from pydantic import BaseModel, ConfigDict, Field

from gelu_verify import contracts, formats
from gelu_verify.contracts import Contract
from gelu_verify.errors import UsageError
from gelu_verify.kernels import registry
from gelu_verify.kernels.spec import KernelSpec
from gelu_verify.operators import get as get_operator
from gelu_verify.operators import require_formula
from gelu_verify.records import KernelResult, Status

DEVICES = ("cpu", "cuda")
DEPTHS = ("quick", "standard", "exhaustive")


class Job(BaseModel):
    """What is to be checked, resolved and validated; travels to the child process as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    spec: KernelSpec
    operator: str
    formula: str
    format: str
    contract: Contract
    device: str = "cpu"
    depth: str = "standard"
    seed: int = 0
    via: str | None = Field(None, description="autograd: the backward of a differentiable kernel")
    replay: tuple[tuple[int, ...], ...] = Field(
        (), description="input patterns to run instead of the sweep, one per argument each"
    )


def plan(
    kernel: str,
    *,
    operator: str | None = None,
    formula: str | None = None,
    format_names: tuple[str, ...] = (),
    contract: str | None = None,
    device: str = "cpu",
    depth: str = "standard",
    seed: int = 0,
    replay: tuple[str, ...] = (),
) -> list[Job]:
    """Return the jobs of one kernel: each format, forward, and backward through autograd.

    What is not given is taken from the kernel's declaration. With ``replay`` (inputs as patterns or
    decimals, ``dy,x`` for two) only the operator with that many arguments runs, on those inputs.
    Raises :class:`UsageError` for any name that is not known.
    """
    spec = registry.find(kernel)
    chosen = get_operator(operator or spec.operator).name
    function = require_formula(formula or spec.formula)
    promise = contracts.get(contract or spec.contract)
    names = tuple(formats.get(name).name for name in format_names or spec.formats)
    if device.split(":", maxsplit=1)[0] not in DEVICES:
        raise UsageError(f"device: got {device!r}, expected cpu, cuda or cuda:N.")
    if depth not in DEPTHS:
        raise UsageError(f"sweep: got {depth!r}, expected one of {', '.join(DEPTHS)}.")
    jobs = []
    for name in names:
        job = Job(
            spec=spec,
            operator=chosen,
            formula=function,
            format=name,
            contract=promise,
            device=device,
            depth=depth,
            seed=seed,
        )
        jobs.append(job)
        if chosen == "gelu":
            jobs.append(job.model_copy(update={"operator": "gelu_backward", "via": "autograd"}))
    return [_replaying(job, replay) for job in jobs if _takes(job, replay)] if replay else jobs


def _takes(job: Job, replay: tuple[str, ...]) -> bool:
    """Tell whether a job's operator has as many arguments as the inputs to replay."""
    return all(len(text.split(",")) == len(get_operator(job.operator).arguments) for text in replay)


def _replaying(job: Job, replay: tuple[str, ...]) -> Job:
    fmt = formats.get(job.format)
    patterns = tuple(tuple(formats.parse(part, fmt) for part in text.split(",")) for text in replay)
    return job.model_copy(update={"replay": patterns})


def blank(job: Job) -> KernelResult:
    """Return the result of a job before anything is known: crashed until proven otherwise."""
    return KernelResult(
        name=job.spec.name,
        target=job.spec.target,
        operator=job.operator,
        via=job.via,
        formula=job.formula,
        format=job.format,
        device=job.device,
        status=Status.CRASHED,
        contract=job.contract.name,
    )


def reproduce(job: Job, bits: tuple[str, ...] = ()) -> str:
    """Return the command line that runs a job again, on one input if its patterns are given."""
    parts = ["gelu-verify", "check", job.spec.name]
    parts += ["--operator", "gelu" if job.via else job.operator, "--formula", job.formula]
    parts += ["--format", job.format, "--contract", job.contract.name]
    if job.device != "cpu":
        parts += ["--device", job.device]
    if job.depth != "standard":
        parts += ["--sweep", job.depth]
    if bits:
        parts += ["--input", ",".join(bits)]
    return shlex.join(parts)
