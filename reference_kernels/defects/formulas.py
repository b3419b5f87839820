"""Another function than the declared one, everywhere or on some routes and sizes."""

from __future__ import annotations

from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import forms


@defect(
    Kind.FORMULA,
    report="pytorch/pytorch#104061",
    rejected_by={"formula": "declared erf, computes tanh"},
    unseen_because="the formulas differ by 4.7e-4 at most",
)
def tanh_for_erf(x: Tensor) -> Tensor:
    """Computes the tanh formula where the exact one is claimed."""
    return forms.tanh(x)
