"""Launches by Triton's look-up and past it, in a process of its own; the sm_90 is not there.

Prints, for each call, what reached the driver the first time and when it was known: binary, grid
and arguments. Calls that need other binaries alternate, so that a key that confuses them shows.
"""

import json

import torch
import triton

from reference_kernels import triton_fused
from reference_kernels.triton_fused import launch, relaunch
from tests.reference_kernels.compiling import NoLaunch

launched = []


def told(part):
    """An argument as JSON: of a tensor all but where it lies."""
    if not torch.is_tensor(part):
        return part
    return [str(part.dtype), *part.shape, *part.stride(), part.data_ptr() % 16]


class Recording(NoLaunch):
    """Notes the binary, the grid and the arguments of every launch."""

    def launcher_cls(self, source, metadata):
        def launcher(*given):
            grid, arguments = given[:3], given[9:]
            launched.append([metadata.hash, *grid, *map(told, arguments)])

        return launcher


def backward(x, bias, formula="erf"):
    leaves = [x.requires_grad_(), bias.requires_grad_()]
    result = triton_fused.bias_gelu(*leaves, formula)
    return lambda: torch.autograd.grad(result, leaves, torch.ones_like(result), retain_graph=True)


def calls():
    """Return calls that differ in size, strides, alignment, dtype or formula, all else alike."""
    room = torch.zeros(4096)
    half = room.to(torch.bfloat16)
    bias, narrow = torch.zeros(64), torch.zeros(33)
    return [
        lambda: triton_fused.bias_gelu(room[:2048].view(32, 64), bias),
        lambda: triton_fused.bias_gelu(room[1:2049].view(32, 64), bias),
        lambda: triton_fused.bias_gelu(room.view(64, 64).t(), bias),
        lambda: triton_fused.bias_gelu(room[: 32 * 33].view(32, 33), narrow),
        lambda: triton_fused.bias_gelu(half[:2048].view(32, 64), bias.to(torch.bfloat16)),
        lambda: triton_fused.bias_gelu(room[:2048].view(32, 64), bias, "tanh"),
        backward(room[:2048].clone().view(32, 64), bias.clone()),
    ]


def main():
    triton.runtime.driver.set_active(Recording())
    launch.require = lambda *arguments, **options: None
    found = {}
    todo = calls()
    for name, first in (("first", True), ("second", False), ("third", False)):
        found[name] = []
        for call in todo:
            if first:
                relaunch._known.clear()
            launched.clear()
            call()
            found[name] += [list(launched)]
        if first:
            for call in todo:
                call()  # they have forgotten each other
    by_triton = triton.runtime.JITFunction.run
    triton.runtime.JITFunction.run = None  # a look-up would raise
    for call in todo:
        call()
    triton.runtime.JITFunction.run = by_triton
    print(json.dumps(found))


if __name__ == "__main__":
    main()
