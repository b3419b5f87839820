"""``linear_gelu`` on CUDA in the form known from articles; importing this builds and loads it.

A matrix product into an fp32 workspace, then one kernel for bias and GELU with ``erfcf``. It is the
operator of ``cpu``, which another backend joins here: schema, fakes and gradient are the same.
"""

from __future__ import annotations

import torch
from torch.utils import cpp_extension

from gelu_verify.errors import UnavailableError

if torch.version.cuda is None:
    raise UnavailableError(
        f"CUDA kernels: got torch {torch.__version__} without CUDA, expected one with it. "
        "Install a CUDA build of torch."
    )
if cpp_extension.CUDA_HOME is None:
    raise UnavailableError(
        "CUDA kernels: got no nvcc, expected the CUDA toolkit. Install it, or name its folder in "
        "CUDA_HOME."
    )
# Here, so that nothing is built for a torch without CUDA.
from . import build, cpu

build.load("cuda.cu")
linear_gelu = cpu.linear_gelu
