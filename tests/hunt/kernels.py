"""Kernels for hunts: each has one fault at one place."""

import os
import signal

import torch

HALF_ROOT = 0.7071067811865475244


def sound(x):
    wide = x.double()
    return (0.5 * wide * torch.erfc(-wide * HALF_ROOT)).to(x.dtype)


def bump(x):
    """Grow in error towards x = 2.3456789, within a range that holds 1e-6 of the doubles."""
    extra = 1e-9 * torch.exp(-((x.double() - 2.3456789) / 1e-4).square())
    return (sound(x).double() * (1 + extra)).to(x.dtype)


def nan_near_minus_two(x):
    return torch.where((x < -1.9) & (x > -2.1), torch.nan, sound(x))


def infinity_at_two(x):
    return torch.where((x > 2.0) & (x < 2.1), torch.inf, sound(x))


def dies_later(x):
    dies_later.calls += 1
    if dies_later.calls > 40:
        os.kill(os.getpid(), signal.SIGSEGV)
    return sound(x)


dies_later.calls = 0


def raises(x):
    raise RuntimeError("index out of range")


def hangs(x):
    while True:
        pass


def no_doubles(x):
    raise NotImplementedError("dtype float64 is not implemented")
