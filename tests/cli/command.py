"""Call the command line in this process or as users do."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from gelu_verify import cli

COMMAND = str(Path(sys.executable).with_name("gelu-verify"))

KERNELS = """
import torch

def sound(x):
    if not x.is_floating_point():
        raise TypeError(f"x: got {x.dtype}")
    wide = x.double()
    y = 0.5 * wide * torch.erfc(-wide * 0.7071067811865476)
    return torch.where(x == -torch.inf, -0.0, y).to(x.dtype).detach()

def wrong_at_one(x):
    return torch.where(x == -1.0, 0.16, sound(x).double()).to(x.dtype)

def prints(x):
    print("KERNEL SPEAKS")
    return sound(x)

def sys_exits(x):
    raise SystemExit(0)

def two(x, y):
    return x

def hangs(x):
    while True:
        pass
"""


class Done(NamedTuple):
    status: int
    out: str
    err: str


def here(capsys, monkeypatch, *words):
    """Run ``main`` with these arguments and return what it did."""
    monkeypatch.setattr(sys, "argv", ["gelu-verify", *map(str, words)])
    capsys.readouterr()
    try:
        cli.main()
        status = 0
    except SystemExit as ended:
        status = ended.code or 0
    return Done(status, *capsys.readouterr())


def process(*words, **options):
    """Run the installed command."""
    command = [COMMAND] if Path(COMMAND).exists() else [sys.executable, "-m", "gelu_verify"]
    done = subprocess.run(
        [*command, *map(str, words)], capture_output=True, text=True, check=False, **options
    )
    return Done(done.returncode, done.stdout, done.stderr)
