"""Kernels to train with: sound ones, and some with a fault."""

import ctypes
import time

import torch
from torch import Tensor

from gelu_verify.reference import fast


def gelu(x: Tensor) -> Tensor:
    return torch.nn.functional.gelu(x)


def gelu_tanh(x: Tensor) -> Tensor:
    return torch.nn.functional.gelu(x, approximate="tanh")


def without_gradient(x: Tensor) -> Tensor:
    return torch.nn.functional.gelu(x.detach())


def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    return torch.nn.functional.gelu(x + bias)


def linear_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.nn.functional.gelu(torch.nn.functional.linear(x, weight, bias))


def sound_backward(dy: Tensor, x: Tensor) -> Tensor:
    return (dy.double() * fast.derivative(x.double())).to(x.dtype)


def nan_backward(dy: Tensor, x: Tensor) -> Tensor:
    return torch.full_like(x, torch.nan)


def raises(x: Tensor) -> Tensor:
    if x.dim() == 2 and len(x) == 200:  # the validation set
        raise RuntimeError("no such size")
    return torch.nn.functional.gelu(x)


def _training(x: Tensor) -> bool:
    return len(x) == 32  # a batch of the tiny task


def segfaults(x: Tensor) -> Tensor:
    if _training(x):
        ctypes.string_at(0)
    return torch.nn.functional.gelu(x)


def hangs(x: Tensor) -> Tensor:
    while _training(x):
        time.sleep(0.01)
    return torch.nn.functional.gelu(x)
