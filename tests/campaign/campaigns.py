"""Small campaigns on a kernel in a file, and what kernels do to their worker."""

from pathlib import Path

from gelu_verify import contracts
from gelu_verify.campaign.run import Plan
from gelu_verify.job import Job
from gelu_verify.kernels.spec import KernelSpec

FIRST = 0xC0BF0000  # around -6, in the tail
PATTERNS = 1 << 18
SHARD = 1 << 15

KERNELS = """
import os, time, torch

def sound(x):
    wide = x.double()
    y = (0.5 * wide * torch.erfc(-wide * 0.7071067811865476)).to(x.dtype)
    bits = x.view(torch.int32) if x.dtype == torch.float32 else torch.zeros(1, dtype=torch.int32)
    return torch.where(bits % 16 == 3, y * (1 + 9 * 2.0**-23), y)

def slow(x):
    time.sleep(0.2)
    return sound(x)

def in_the_range(x):
    return x.dtype == torch.float32 and x.numel() > 2**14 and bool((x == -6.5).any())

def raises(x):
    if in_the_range(x):
        raise RuntimeError("no room at -6.5")
    return sound(x)

def dies(x):
    if in_the_range(x):
        os._exit(3)
    return sound(x)

def dies_once(x):
    marker = __file__ + ".died"
    if in_the_range(x) and not os.path.exists(marker):
        open(marker, "w").close()
        os._exit(3)
    return sound(x)

def hangs(x):
    while in_the_range(x):
        time.sleep(1.0)
    return sound(x)

def hoards(x):
    kept = []
    while in_the_range(x) and len(kept) < 64:  # 4 GiB
        kept.append(torch.ones(1 << 24))
        time.sleep(0.05)
    return sound(x)

def other_dtype(x):
    return sound(x).double() if in_the_range(x) else sound(x)
"""


def file(folder: Path) -> Path:
    path = folder / "k.py"
    path.write_text(KERNELS)
    return path


def job(folder: Path, function: str = "sound", contract: str = "cancelling", **more) -> Job:
    target = f"{file(folder)}:{function}"
    spec = KernelSpec(name=target, target=target, formats=("fp32",))
    return Job(
        spec=spec, operator="gelu", formula="erf", format="fp32", depth="exhaustive",
        contract=contracts.get(contract), **more,
    )  # fmt: skip


def plan(folder: Path, **more) -> Plan:
    options = {
        "ledger": folder / "ledger.sqlite", "workers": 1, "first": FIRST, "patterns": PATTERNS,
        "shard": SHARD, "seconds": 120.0,
    }  # fmt: skip
    return Plan(**options | more)


def quiet(done: int, total: int) -> None:
    return None
