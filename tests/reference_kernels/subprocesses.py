"""Python without Triton's interpreter: kernels are defined to be compiled, not interpreted."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def python_path():
    """PYTHONPATH for a child: this checkout, then what this process was given."""
    return os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


def compiling(*words, **environment):
    """What a Python run prints last, as JSON; it must succeed."""
    own = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    run = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=own | {"PYTHONPATH": python_path()} | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout.splitlines()[-1])
