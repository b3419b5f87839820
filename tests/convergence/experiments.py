"""Experiments on the tiny tasks, by function."""

from gelu_verify.convergence.experiment import Experiment
from gelu_verify.job import plan
from gelu_verify.kernels import registry

SEEDS = (0, 1, 2)


def of(function, ledger, seeds=SEEDS, backward=None, fmt="fp32", task="TASK", **declared):
    """Return the experiment with a function of ``tests.convergence.kernels`` or of a defect.

    task: its name in ``tests.convergence.tiny``.
    """
    declared.setdefault("operator", "gelu")
    target = f"{function.__module__}:{function.__name__}"
    spec = registry.find(f"{backward.__module__}:{backward.__name__}") if backward else None
    return Experiment(
        job=plan(target, format_names=(fmt,), **declared)[0],
        task=f"tests.convergence.tiny:{task}",
        seeds=seeds,
        backward=spec,
        ledger=ledger,
    )


def facts(record):
    """Return what two runs of one experiment must agree in."""
    volatile = {"environment", "seconds", "trained"}
    return record.model_dump(exclude=volatile)
