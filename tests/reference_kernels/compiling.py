"""Compile for sm_90 without a GPU, in a process of its own: ahead, or as a first call does.

``python compiling.py ahead|met OPERATOR=CASE...`` prints what the index then has. For "met" the
host functions run as they are, on CPU tensors, with a driver whose launches do nothing.
"""

import json
import sys
from dataclasses import asdict

import torch
import triton
from triton.backends.compiler import GPUTarget

from gelu_verify.inputs.problems import parse
from gelu_verify.operators import fused
from reference_kernels import triton_fused
from reference_kernels.triton_fused import compiled, launch

TARGET = GPUTarget("cuda", 90, 32)


class NoLaunch:
    """A driver of an sm_90 that is not there."""

    utils = None

    def __init__(self):
        self.utils = self

    def get_current_target(self):
        return TARGET

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_device_properties(self, device):
        return {"max_shared_mem": 232448}

    def load_binary(self, name, kernel, shared, device):
        return 1, 1, 32, 0, 1024

    def unload_module(self, module):
        return None

    def launcher_cls(self, source, metadata):
        return lambda *arguments: None

    def get_benchmarker(self):
        return lambda call, quantiles, **options: (call(), [1.0, 1.0, 1.0])[1]


def meet(operator, case):
    triton.runtime.driver.set_active(NoLaunch())
    launch.require = lambda *arguments, **options: None
    definition = fused.get(operator)
    shapes = definition.shapes(dict(parse(case, definition).dims))
    parts = [torch.zeros(shape, dtype=torch.bfloat16) for shape in shapes]
    function = getattr(triton_fused, operator)
    function(*parts)
    leaves = [part.requires_grad_() for part in parts]
    result = function(*leaves)
    torch.autograd.grad(result, leaves, torch.zeros_like(result))


if __name__ == "__main__":
    how, *cases = sys.argv[1:]
    for text in cases:
        operator, case = text.split(":")
        if how == "ahead":
            triton_fused.warmup({operator: [case]}, ("bf16",), target=TARGET)
        else:
            meet(operator, case)
    print(json.dumps([asdict(part) | {"stored": part.is_stored} for part in compiled.listed()]))
