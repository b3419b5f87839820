"""What every test needs before anything else is imported."""

import os
import sys
from pathlib import Path

# Several test processes share the cores; threads of one that wait for another only spin.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from hypothesis import settings

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when triton is imported

ROOT = str(Path(__file__).parents[1])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)  # for tests.strategies and tests.samples

# The same examples on every machine and run; a failure that is found becomes an @example.
settings.register_profile("ci", max_examples=50, derandomize=True, deadline=None, database=None)
settings.load_profile("ci")
