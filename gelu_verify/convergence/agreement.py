"""The kernel swapped into a trained model: classes, logits, and which inputs its errors reach."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gelu_verify.convergence.records import Agreement, Arm, Exposure
from gelu_verify.convergence.setting import Setting, loss_of, predict
from gelu_verify.convergence.sites import Isolated, Site
from gelu_verify.measure.regions import REGIONS, Regions
from gelu_verify.reference import fast

#: Validation examples in one call of the model, and those whose activations are looked at.
_CHUNK = 512


def measure(setting: Setting, model: nn.Module, seed: int) -> dict[str, Any]:
    """Return the fields of a run that say what the kernel does in its trained model."""
    swapped = _with(setting, Arm.REFERENCE, setting.kernel, model, seed)
    exact = _with(setting, Arm.EXACT64, setting.site(Arm.EXACT64, seed), model, seed)
    isolated = setting.place.isolated
    return {
        "agreement": _agreement(setting, model, swapped, exact),
        "exposure": _exposure(setting, isolated, model, seed) if isolated else (),
    }


def _with(setting: Setting, arm: Arm, site: Site, model: nn.Module, seed: int) -> nn.Module:
    """Return the model with these weights and another site."""
    made = setting.build(arm, seed, site)
    made.load_state_dict(model.state_dict())
    return made


@torch.no_grad()
def _agreement(
    setting: Setting, model: nn.Module, swapped: nn.Module, exact: nn.Module
) -> Agreement:
    def logits(arm: Arm, of: nn.Module) -> Tensor:
        chunks = setting.data.valid_inputs.split(_CHUNK)
        parts = [predict(setting, arm, of, inputs).flatten(0, -2).double() for inputs in chunks]
        return torch.cat(parts)

    truth = logits(Arm.EXACT64, exact)
    actual, own = logits(Arm.REFERENCE, swapped), logits(Arm.REFERENCE, model)
    classes = truth.argmax(-1)
    return Agreement(
        examples=len(truth),
        top1_agree=int((actual.argmax(-1) == classes).sum()),
        top1_agree_reference=int((own.argmax(-1) == classes).sum()),
        largest_logit_error=float((actual - truth).abs().max()),
        rms_logit_error=_rms(actual - truth),
        rms_logit_error_reference=_rms(own - truth),
        rms_logit=_rms(truth),
    )


def _exposure(
    setting: Setting, isolated: Isolated, model: nn.Module, seed: int
) -> tuple[Exposure, ...]:
    """Return what of a model's activations is in each region, and the kernel's error there.

    The gradient that comes to an activation is that of the model's own loss.
    """
    seen: list[tuple[Tensor, Tensor]] = []
    own = setting.site(Arm.REFERENCE, seed)

    def watched(*arguments: Tensor) -> Tensor:
        y = own(*arguments)
        x = isolated.input(*arguments).detach()
        y.register_hook(lambda dy: seen.append((x, isolated.gradient(dy, *arguments).detach())))
        return y

    twin = _with(setting, Arm.REFERENCE, watched, model, seed)
    inputs, targets = setting.data.valid_inputs[:_CHUNK], setting.data.valid_targets[:_CHUNK]
    loss_of(setting, Arm.REFERENCE, twin, inputs, targets).backward()
    codes, errors, sizes = [], [], []
    for x, dy in seen:
        exact = torch.stack(
            (
                fast.gelu(x.double(), setting.formula),
                dy.double() * fast.derivative(x.double(), setting.formula),
            )
        )
        errors.append((_alone(setting, isolated, x, dy) - exact).flatten(1))
        sizes.append(exact.flatten(1))
        regions = Regions.of(setting.formula, setting.fmt, 0)
        codes.append(regions.codes(x.double()).flatten())
    return _by_region(torch.cat(codes), torch.cat(errors, 1), torch.cat(sizes, 1))


def _alone(setting: Setting, isolated: Isolated, x: Tensor, dy: Tensor) -> Tensor:
    """Return the kernel's f(x) and dy·f'(x), float64 (2, ...)."""
    leaf = x.detach().requires_grad_()
    with setting.autocast(Arm.REFERENCE):
        y = isolated.alone(setting.kernel, leaf)
    (gradient,) = torch.autograd.grad(y, leaf, dy.to(y.dtype))
    return torch.stack((y.detach().double(), gradient.double()))


def _by_region(codes: Tensor, errors: Tensor, exact: Tensor) -> tuple[Exposure, ...]:
    """Return a row a region that holds inputs; codes (N,), errors and exact (2, N)."""
    value, gradient = exact[0].abs().sum(), exact[1].square().sum().sqrt()
    rows = []
    for code, region in enumerate(REGIONS):
        here = codes == code
        if not here.any():
            continue
        row = Exposure(
            region=region.value,
            share=float(here.double().mean()),
            value_share=float(exact[0, here].abs().sum() / value),
            value_error=float(errors[0, here].abs().sum() / value),
            gradient_error=float(errors[1, here].square().sum().sqrt() / gradient),
        )
        rows.append(row)
    return tuple(rows)


def _rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt())
