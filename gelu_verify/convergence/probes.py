"""What is kept of a model at a fixed step, and how far an arm has drifted from another."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from gelu_verify.convergence.records import Arm, Probe
from gelu_verify.convergence.setting import Setting, predict

#: Validation examples that a probe looks at, the first ones.
_EXAMPLES = 64
#: Minibatches from which the scatter of a gradient is estimated.
_BATCHES = 8
#: Logits and parts of the gradient that are kept, evenly spread.
_KEPT = 512


def probe(setting: Setting, arm: Arm, seed: int, model: nn.Module, step: int) -> Probe:
    """Return a look at a model of an arm, beside the exact gradient in float64 at its weights."""
    wide = setting.build(Arm.EXACT64, seed, setting.site(Arm.EXACT64, seed))
    wide.load_state_dict(model.state_dict())  # widened: the same weights
    valid = setting.data.valid_inputs[:_EXAMPLES], setting.data.valid_targets[:_EXAMPLES]
    logits, gradient = _graded(setting, arm, model, *valid)
    _, exact = _graded(setting, Arm.EXACT64, wide, *valid)
    return Probe(
        step=step,
        gradient_norm=float(gradient.norm()),
        gradient_error=float((gradient - exact).norm() / exact.norm()),
        gradient_cosine=float(gradient @ exact / (gradient.norm() * exact.norm())),
        batch_noise=_batch_noise(setting, model, seed) if arm is Arm.REFERENCE else None,
        logits=_kept(logits),
        gradient=_kept(gradient),
    )


def _batch_noise(setting: Setting, model: nn.Module, seed: int) -> float:
    """Return how much the gradient of one minibatch scatters about the mean, relative to it."""
    data = setting.data
    order = torch.Generator().manual_seed(seed + 2)
    gradients = []
    for _ in range(_BATCHES):
        batch = torch.randint(len(data.train_inputs), (setting.task.batch,), generator=order)
        batch = batch.to(setting.device)
        examples = data.train_inputs[batch], data.train_targets[batch]
        gradients.append(_graded(setting, Arm.REFERENCE, model, *examples)[1])
    every = torch.stack(gradients)
    mean = every.mean(0)
    variance = float((every - mean).square().sum()) / (_BATCHES - 1)
    return math.sqrt(variance) / float(mean.norm())


def _graded(
    setting: Setting, arm: Arm, model: nn.Module, inputs: Tensor, targets: Tensor
) -> tuple[Tensor, Tensor]:
    """Return logits, and the gradient of every parameter, float64 (P,)."""
    logits = predict(setting, arm, model, inputs)
    loss = functional.cross_entropy(logits.flatten(0, -2), targets.flatten())
    parts = torch.autograd.grad(loss, list(model.parameters()))
    return logits.detach(), torch.cat([part.detach().double().flatten() for part in parts])


def relative_distance(actual: Sequence[float], exact: Sequence[float]) -> float:
    """Return ‖actual − exact‖ / ‖exact‖."""
    a, e = (torch.tensor(part, dtype=torch.float64) for part in (actual, exact))
    return float((a - e).norm() / e.norm())


def cosine(actual: Sequence[float], exact: Sequence[float]) -> float:
    """Return the cosine of the angle between two vectors, NaN where one is 0."""
    a, e = (torch.tensor(part, dtype=torch.float64) for part in (actual, exact))
    size = float(a.norm() * e.norm())
    return float(a @ e) / size if size else math.nan


def _kept(values: Tensor) -> tuple[float, ...]:
    flat = values.flatten()
    every = max(1, -(-len(flat) // _KEPT))
    return tuple(flat[::every].double().tolist())
