"""The tests of fused kernels in use today, held to the same kernels: one call on unit normals.

Each compares the kernel with torch's own operations in the same format (eager), and some both with
eager in float64. They are written as they are found in public test suites, not as they might be
improved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gelu_verify import formats
from gelu_verify.formats import tensors
from gelu_verify.job import Job
from gelu_verify.kernels import activity
from gelu_verify.kernels.subject import through_autograd
from gelu_verify.operators import fused
from gelu_verify.records import UsualVerdict
from gelu_verify.selftest import eager

#: Takes actual, eager and exact results; gives whether it passes and what it measured.
Test = Callable[[Tensor, Tensor, Tensor], tuple[bool, float]]


def _close(tolerance: float | None = None) -> Test:
    def test(actual: Tensor, reference: Tensor, _exact: Tensor) -> tuple[bool, float]:
        apart = float((actual.double() - reference.double()).abs().max())
        try:
            torch.testing.assert_close(actual, reference, atol=tolerance, rtol=tolerance)
        except AssertionError:
            return False, apart
        return True, apart

    return test


def _twice_eager(actual: Tensor, reference: Tensor, exact: Tensor) -> tuple[bool, float]:
    """As in flash-attention: the largest error is at most twice that of eager."""
    error = float((actual.double() - exact).abs().max())
    of_eager = float((reference.double() - exact).abs().max())
    return error <= 2 * of_eager, error / of_eager if of_eager else math.inf


def _correlation(actual: Tensor, reference: Tensor, _exact: Tensor) -> tuple[bool, float]:
    """As ``comp_pcc`` of tt-metal: Pearson's coefficient of all elements."""
    pair = torch.stack([actual.double().flatten(), reference.double().flatten()])
    found = float(torch.corrcoef(pair)[0, 1])
    return found >= 0.999, found


def _cosine(actual: Tensor, reference: Tensor, _exact: Tensor) -> tuple[bool, float]:
    one, other = actual.double().flatten(), reference.double().flatten()
    found = float(torch.nn.functional.cosine_similarity(one, other, dim=0))
    return found >= 0.999, found


def _signal_to_noise(actual: Tensor, reference: Tensor, _exact: Tensor) -> tuple[bool, float]:
    """Signal to quantisation noise in dB, as quantisation tools report it."""
    noise = (actual.double() - reference.double()).square().sum()
    found = float(10 * torch.log10(reference.double().square().sum() / noise))
    return found >= 25.0, found


TESTS: dict[str, Test] = {
    "assert_close": _close(),
    "1e-2": _close(1e-2),
    "1e-3": _close(1e-3),
    "2x eager": _twice_eager,
    "cosine": _cosine,
    "PCC": _correlation,
    "SQNR": _signal_to_noise,
}


def verdicts(job: Job, kernel: Callable[..., Any]) -> tuple[UsualVerdict, ...]:
    """Return what every test says of a kernel, gradients included where it has them."""
    dtype = tensors.dtype(formats.get(job.format))
    called = through_autograd(kernel) if job.via else kernel
    reference = eager.function(job.operator, job.formula)
    given = eager.inputs(job.operator, dtype, job.device)
    try:
        with activity.of_kernel():
            actual = _results(called, given, job)
    except Exception as error:  # whatever a kernel raises, the test has failed
        return _none(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
    in_eager = _results(reference, given, job)
    exact = _results(reference, tuple(part.double() for part in given), job)
    parts = list(zip(actual, in_eager, exact, strict=False))
    return tuple(_over_all(name, parts) for name in TESTS)


def crashed(reason: str) -> tuple[UsualVerdict, ...]:
    """Return the verdicts on a kernel that ended its process or did not return."""
    return _none(reason)


def _none(reason: str) -> tuple[UsualVerdict, ...]:
    return tuple(UsualVerdict(test=name, passes=False, failure=reason) for name in TESTS)


def _over_all(name: str, parts: list[tuple[Tensor, Tensor, Tensor]]) -> UsualVerdict:
    """Apply a test to the result and each gradient; the figure is that of the first that fails."""
    found = [TESTS[name](*part) for part in parts]
    passes, figure = next((one for one in found if not one[0]), found[0])
    return UsualVerdict(test=name, passes=passes, figure=figure)


def _results(function: Callable[..., Any], given: tuple[Tensor, ...], job: Job) -> list[Tensor]:
    """Return the result on copies of the inputs, and of a fused kernel the gradients it offers."""
    if job.operator not in fused.NAMES:
        return [function(*(part.clone() for part in given)).detach().cpu()]
    leaves = tuple(part.clone().requires_grad_() for part in given)
    result = function(*leaves)
    if result.grad_fn is None:
        return [result.detach().cpu()]
    dy = torch.linspace(0.5, 1.5, result.numel(), dtype=torch.float64, device=result.device)
    dy = dy.reshape(result.shape).to(result.dtype)
    parts = torch.autograd.grad(result, leaves, dy, allow_unused=True)
    return [part.detach().cpu() for part in (result, *parts) if part is not None]
