"""One unit of work: kernel, operator, formula, format, contract, device. Loads no framework."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from gelu_verify import contracts, formats
from gelu_verify.contracts import Contract
from gelu_verify.errors import UsageError, unknown_name
from gelu_verify.kernels import registry
from gelu_verify.kernels.spec import KernelSpec
from gelu_verify.operators import OPERATORS, fused, require_formula
from gelu_verify.operators import get as get_operator
from gelu_verify.operators import require as require_operator
from gelu_verify.records import KernelResult, Status

DEVICES = ("cpu", "cuda")
DEPTHS = ("quick", "standard", "exhaustive")
LARGEST_SEED = 2**63 - 2  # the sweep uses seed + 1 too


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
    checks: tuple[str, ...] = Field(
        (), description="names of the checks to run; all that apply if empty"
    )
    without: tuple[str, ...] = Field((), description="names of checks to leave out")
    examples: int = Field(0, ge=0, description="inputs to draw beside the sweep, elementwise")
    comparable: bool = Field(False, description="whether to keep what a baseline is compared by")
    speed: bool = Field(False, description="whether to time calls, after the checks")
    census: str | None = Field(
        None, description="what a campaign over all inputs found, as exhaustive.transport writes it"
    )
    replay: tuple[tuple[int, ...], ...] = Field(
        (), description="input patterns to run instead of the sweep, one per argument each"
    )
    cases: tuple[str, ...] = Field(
        (), description="cases of a fused operator to run instead of its list"
    )

    @property
    def is_fused(self) -> bool:
        """Whether the operator is judged by a derived bound (too)."""
        return self.operator in fused.NAMES


def plan(
    kernel: str | KernelSpec,
    *,
    operator: str | None = None,
    formula: str | None = None,
    format_names: tuple[str, ...] = (),
    contract: str | None = None,
    device: str = "cpu",
    depth: str = "standard",
    seed: int = 0,
    replay: tuple[str, ...] = (),
    cases: tuple[str, ...] = (),
    speed: bool = False,
) -> list[Job]:
    """Return the jobs of one kernel: each format, forward, and backward through autograd.

    What is not given is taken from the kernel's declaration. With ``replay`` (inputs as patterns or
    decimals, ``dy,x`` for two) only the operator with that many arguments runs, on those inputs.
    Raises :class:`UsageError` for any name that is not known.
    """
    spec = registry.find(kernel) if isinstance(kernel, str) else kernel
    chosen = require_operator(operator or spec.operator)
    function = require_formula(formula or spec.formula)
    promise = contracts.get(contract or spec.contract)
    wanted = (name.strip() for name in format_names or spec.formats)
    names = tuple(dict.fromkeys(formats.get(name).name for name in wanted))
    require_device(device)
    if depth not in DEPTHS:
        raise unknown_name("sweep", depth, DEPTHS)
    if not 0 <= seed <= LARGEST_SEED:
        raise UsageError(f"seed: got {seed}, expected a number from 0 to 2^63 - 2.")
    if depth == "exhaustive" and chosen not in OPERATORS:
        raise UsageError(
            f"sweep: got exhaustive for {chosen}, expected an operator of one or two numbers. "
            "Use quick or standard; identity runs every 16-bit input of the activation."
        )
    if depth == "exhaustive" and "fp64" in format_names:
        raise UsageError(
            "sweep: got exhaustive for fp64, expected a format of at most 32 bits. "
            "Use standard, or gelu-verify hunt."
        )
    if depth == "exhaustive" and "fp32" in format_names and chosen in ("bias_gelu", "geglu"):
        raise UsageError(
            f"sweep: got exhaustive for {chosen} in fp32, expected two arguments of 16 bits "
            "(2^32 pairs). Use standard, or --format bf16,fp16."
        )
    if cases and chosen not in fused.NAMES:
        raise UsageError(
            f"case: got {cases[0]!r} for {chosen}, expected a fused operator. Use --input."
        )
    jobs = []
    for name in names:
        job = Job(
            spec=spec,
            operator=chosen,
            formula=function,
            format=name,
            contract=promise,
            device=device,
            depth="standard" if name == "fp64" and depth == "exhaustive" else depth,
            seed=seed,
            cases=cases,
            speed=speed,
        )
        jobs.append(job)
        if chosen == "gelu":
            jobs.append(job.model_copy(update={"operator": "gelu_backward", "via": "autograd"}))
    return [_replaying(job, replay) for job in jobs if _takes(job, replay)] if replay else jobs


def require_device(name: str) -> None:
    """Raise a usage error for a name that is no device's; one that is may still be absent."""
    if not re.fullmatch(r"cpu|cuda(:\d{1,3})?", name):
        raise unknown_name("device", name, (*DEVICES, "cuda:N"))


def _takes(job: Job, replay: tuple[str, ...]) -> bool:
    """Tell whether a job's operator has as many arguments as the inputs to replay."""
    return all(len(text.split(",")) == len(get_operator(job.operator).arguments) for text in replay)


def _replaying(job: Job, replay: tuple[str, ...]) -> Job:
    fmt = formats.get(job.format)
    patterns = tuple(tuple(formats.parse(part, fmt) for part in text.split(",")) for text in replay)
    return job.model_copy(update={"replay": patterns})


def identity(job: Job) -> dict[str, Any]:
    """Return the fields of a result that say what it is of."""
    return {
        "name": job.spec.name,
        "target": job.spec.target,
        "operator": job.operator,
        "via": job.via,
        "formula": job.formula,
        "format": job.format,
        "device": job.device,
    }


def blank(job: Job) -> KernelResult:
    """Return the result of a job before anything is known: crashed until proven otherwise."""
    return KernelResult(
        **identity(job),
        replayed=len(job.replay),
        status=Status.CRASHED,
        contract=job.contract.name,
    )


def reproduce(
    job: Job, inputs: Sequence[Sequence[str]] = (), cases: Sequence[str] = ()
) -> str | None:
    """Return the command line that runs a job again, on inputs or cases alone if there are any.

    inputs: bit patterns, one for each argument. None for a function that no name leads to.
    """
    kernel = job.spec.name if job.spec.registered else job.spec.target
    if "<" in kernel:
        return None
    parts = ["gelu-verify", "check", kernel]
    parts += ["--operator", "gelu" if job.via else job.operator, "--formula", job.formula]
    parts += ["--format", job.format, "--contract", job.contract.name]
    if job.device != "cpu":
        parts += ["--device", job.device]
    if job.depth != "standard":
        parts += ["--sweep", job.depth]
    if job.seed:
        parts += ["--seed", str(job.seed)]
    for patterns in inputs:
        parts += ["--input", ",".join(patterns)]
    for case in cases:
        parts += ["--case", case]
    return shlex.join(parts)
