"""From settings to jobs: hard cases first, then the sweeps."""

from __future__ import annotations

import secrets
from math import isfinite

from gelu_verify import formats, job
from gelu_verify.baseline import Key
from gelu_verify.config.settings import KernelEntry, Profile, Settings
from gelu_verify.errors import UsageError
from gelu_verify.inputs import hard_cases
from gelu_verify.job import Job
from gelu_verify.kernels.spec import KernelSpec
from gelu_verify.operators import OPERATORS, place

#: Property-based examples a kernel and format, where the settings name none.
_EXAMPLES = {Profile.CI: 20, Profile.NIGHTLY: 500}


def jobs(settings: Settings) -> list[Job]:
    """Return the jobs of all kernels, those of one beside each other.

    Raises :class:`UsageError` where there are none, or two of the same.
    """
    found = [one for entry in settings.kernels for one in of_kernel(entry, settings)]
    if not found:
        raise UsageError(
            "configuration: got no kernel, expected at least one. Add [[tool.gelu_verify.kernels]]."
        )
    seen: set[tuple[object, ...]] = set()
    for one in found:
        key = (one.spec.name, one.operator, one.via, one.formula, one.format, one.device)
        if not one.replay and key in seen:
            raise UsageError(
                f"configuration: got {one.spec.name} {one.operator} {one.formula} {one.format} on "
                f"{one.device} twice. Drop one."
            )
        seen |= set() if one.replay else {key}
    return found


def keys(settings: Settings) -> set[Key]:
    """Return what baselines may be of."""
    return {Key.of(one) for one in jobs(settings)}


def fresh_seed(settings: Settings) -> int:
    """Return the seed of a run: the given one; in the nightly profile one that nobody chose."""
    if settings.profile is Profile.NIGHTLY and settings.seed == 0:
        return 1 + secrets.randbelow(2**32)
    return settings.seed


def of_kernel(
    entry: KernelEntry, settings: Settings, declared: KernelSpec | None = None
) -> list[Job]:
    """Return the jobs of one kernel; declared: of a function at hand."""
    spec = settings.spec(entry, declared)
    planned = [
        one
        for device in entry.devices or settings.devices
        for one in job.plan(spec, device=device, depth=settings.sweep, seed=settings.seed)
    ]
    count = settings.examples
    examples = _EXAMPLES[settings.profile] if count is None else count
    more = {"examples": examples, "comparable": True}
    planned = [one.model_copy(update=more) for one in planned]
    return [*(replay for one in planned if (replay := _replay(one))), *planned]


def _replay(one: Job) -> Job | None:
    """Return the job of the inputs that once failed; None if there are none."""
    if one.operator not in OPERATORS:
        return None  # the stored cases of a fused operator begin its list
    fmt = formats.get(one.format)
    x = place(OPERATORS[one.operator].arguments)
    hard = [p for p in hard_cases.patterns(one.operator, fmt) if isfinite(fmt.decode(p[x]))]
    if not hard:
        return None
    return one.model_copy(update={"replay": tuple(hard), "checks": ("accuracy",)})
