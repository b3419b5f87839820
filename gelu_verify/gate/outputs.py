"""How many results changed, where, and by how much: exact wherever the inputs are the same."""

from __future__ import annotations

from gelu_verify.baseline import Measurement
from gelu_verify.gate.ratchet import Fact, Weight, same_inputs
from gelu_verify.job import Job
from gelu_verify.statistics.outputs import changed


def facts(before: Measurement, now: Measurement, job: Job) -> list[Fact]:
    """Return the fact that results changed, with the input where they moved farthest."""
    old, new = before.comparable, now.comparable
    if old is None or new is None or not same_inputs(before, now):
        return []
    found = changed(old.outputs, new.outputs)
    if not found.any:
        return []
    if found.changed is None or found.first is None or found.farthest is None:
        return [Fact(Weight.SAME, f"some of {found.count:,} results changed")]
    first, farthest = (_input(job, index) for index in (found.first, found.farthest))
    text = (
        f"{found.changed:,} of {found.count:,} results changed, first at {first}, "
        f"most at {farthest}: by {found.largest_move:,} of the format's steps"
    )
    return [Fact(Weight.SAME, text, farthest)]


def _input(job: Job, index: int) -> str:
    """Return the input of a sweep at an index, decimal and bit pattern; loads torch."""
    from gelu_verify import describe, formats, operators
    from gelu_verify.formats import tensors
    from gelu_verify.inputs import planned

    fmt = formats.get(job.format)
    shown = []
    for part in planned.sweep_of(job).inputs:
        pattern = int(tensors.to_bits(part[index], fmt)) & ((1 << fmt.bits) - 1)
        shown.append(f"{describe.value(fmt.decode(pattern), fmt)} ({describe.bits(pattern, fmt)})")
    names = operators.get(job.operator).arguments
    return ", ".join(f"{name} = {text}" for name, text in zip(names, shown, strict=True))
