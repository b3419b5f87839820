"""Kernels that harm their process; run only in a child of their own. bf16 is harmed, fp32 not."""

import ctypes
import os
import signal
import sys
import time

import torch


def _correct(x):
    if not x.is_floating_point():
        raise TypeError(f"x: got {x.dtype}")
    wide = x.double()
    y = 0.5 * wide * torch.erfc(-wide * 0.7071067811865476)
    return torch.where(x == -torch.inf, -0.0, y).to(x.dtype)


def _harmful(harm):
    def kernel(x):
        if x.dtype == torch.bfloat16:
            harm()
        return _correct(x.detach())

    return kernel


def _hang():
    while True:
        time.sleep(0.01)


def _hoard():
    kept = []
    while True:
        kept.append(torch.ones(1 << 24))
        time.sleep(0.02)


def _raise():
    raise ZeroDivisionError("division by zero")


def _print():
    print('{"event": "done", "job": 0}')
    os.write(1, b"not json\n")
    sys.stdout.flush()


def _leave_a_child():
    if os.fork() == 0:
        time.sleep(300)
    os._exit(4)


segfault = _harmful(lambda: ctypes.string_at(0))
exits = _harmful(lambda: os._exit(3))
sys_exits = _harmful(lambda: sys.exit(0))
hangs = _harmful(_hang)
hoards = _harmful(_hoard)
raises = _harmful(_raise)
prints = _harmful(_print)
kills_itself = _harmful(lambda: os.kill(os.getpid(), signal.SIGTERM))
forks_and_exits = _harmful(_leave_a_child)
sound = _harmful(lambda: None)

_calls = []


def dies_late(x):
    """Sound until it sees a column-major matrix: after accuracy, in the special values check."""
    if x.dim() == 2 and not x.is_contiguous():
        os._exit(5)
    return _correct(x.detach())
