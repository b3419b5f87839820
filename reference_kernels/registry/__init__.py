"""The kernels that ship, what they claim and promise. Importing this loads no framework."""

from __future__ import annotations

from gelu_verify.kernels.spec import KernelSpec
from reference_kernels.registry import cpp, fused, pointwise

KERNELS: tuple[KernelSpec, ...] = (*pointwise.KERNELS, *fused.KERNELS, *cpp.KERNELS)
