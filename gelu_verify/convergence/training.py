"""Train one arm from one seed. Seed, and nothing else, decides weights and order of the data."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from gelu_verify.convergence import agreement, probes
from gelu_verify.convergence.records import Arm, Probe, Run
from gelu_verify.convergence.setting import Setting, evaluate, loss_of
from gelu_verify.kernels import activity

#: Called with the step at every point of a curve.
OnPoint = Callable[[int], None]

#: Looks at a model after the first, evenly spaced over the steps.
_PROBES = 4
#: Beyond this loss a run has diverged: e^30 is no probability that anything recovers from.
_DIVERGED = 30.0


def _ignore(step: int) -> None:
    return None


def train(setting: Setting, arm: Arm, seed: int, on_point: OnPoint = _ignore) -> Run:
    """Return an arm's run from a seed. Raises KernelFailure where the kernel fails.

    All the time of the kernel's arm is the kernel's: on a GPU a call says nothing of its length.
    """
    with activity.of_kernel() if arm is Arm.KERNEL else nullcontext():
        model, found = _trained(setting, arm, seed, on_point)
    if arm is not Arm.REFERENCE or found.first_nonfinite is not None:
        return found
    with activity.of_kernel():
        swapped = agreement.measure(setting, model, seed)
    return found.model_copy(update=swapped)


def _trained(setting: Setting, arm: Arm, seed: int, on_point: OnPoint) -> tuple[nn.Module, Run]:
    """Return an arm's model, trained from a seed, and what was seen on the way."""
    task, data = setting.task, setting.data
    model = setting.build(arm, seed, setting.site(arm, seed))
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=task.learning_rate, weight_decay=task.weight_decay, fused=True
    )
    curve, probed = _Curve(), [probes.probe(setting, arm, seed, model, 0)]
    curve.add(0, *evaluate(setting, arm, model))
    looks = {round(task.steps * k / _PROBES) for k in range(1, _PROBES + 1)}
    points = {round(task.steps * k / task.evaluations) for k in range(1, task.evaluations + 1)}
    for step, batch in enumerate(_batches(setting, seed), start=1):
        optimiser.param_groups[0]["lr"] = task.rate(step)
        loss = loss_of(setting, arm, model, data.train_inputs[batch], data.train_targets[batch])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        curve.trained(step, loss.detach())
        if step in points:
            curve.add(step, *evaluate(setting, arm, model))
            on_point(step)
            if curve.first_nonfinite is not None:
                break  # nothing after it is a number of interest
        if step in looks:
            probed.append(probes.probe(setting, arm, seed, model, step))
    return model, curve.run(arm, seed, tuple(probed))


def _batches(setting: Setting, seed: int) -> Tensor:
    """Return the examples of every step, (steps, batch), all at once: a GPU is not waited for."""
    order = torch.Generator().manual_seed(seed)
    size = (setting.task.steps, setting.task.batch)
    drawn = torch.randint(len(setting.data.train_inputs), size, generator=order)
    return drawn.to(setting.device)


class _Curve:
    """The curves of a run as they grow."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.losses: list[float] = []
        self.accuracies: list[float] = []
        self.train_losses: list[float] = []
        self.first_nonfinite: int | None = None
        self._pending: list[tuple[int, Tensor]] = []

    def trained(self, step: int, loss: Tensor) -> None:
        """Keep the loss of a step, on its device: reading it there would wait for the GPU."""
        self._pending.append((step, loss))

    def add(self, step: int, loss: float, accuracy: float) -> None:
        """Keep a point of the validation curve, and the training since the last."""
        self.steps.append(step)
        self.losses.append(loss)
        self.accuracies.append(accuracy)
        seen = [(at, float(value)) for at, value in self._pending]
        if seen:
            self.train_losses.append(sum(value for _, value in seen) / len(seen))
        self._pending = []
        lost = [at for at, value in (*seen, (step, loss)) if not abs(value) <= _DIVERGED]
        if lost and self.first_nonfinite is None:
            self.first_nonfinite = lost[0]

    def run(self, arm: Arm, seed: int, probed: tuple[Probe, ...]) -> Run:
        """Return the record."""
        return Run(
            arm=arm,
            seed=seed,
            steps=tuple(self.steps),
            losses=tuple(self.losses),
            accuracies=tuple(self.accuracies),
            train_losses=tuple(self.train_losses),
            first_nonfinite=self.first_nonfinite,
            probes=probed,
        )
