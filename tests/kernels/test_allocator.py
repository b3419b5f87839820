"""Processes that keep what they have freed."""

import platform
import subprocess
import sys

import pytest

#: Prints how many pages were faulted in for 25 times 8 arrays of 1 MiB that are freed together.
_PROGRAM = """
import resource
import numpy as np
from gelu_verify.kernels.allocator import keep_freed_memory
{policy}
kept = np.ones(1 << 18, np.float32)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(25):
    parts = [kept + k for k in range(8)]
    del parts
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _faults(policy):
    program = [sys.executable, "-c", _PROGRAM.format(policy=policy)]
    return int(subprocess.run(program, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_no_page_is_faulted_in_twice_when_arrays_are_freed_and_taken_again():
    assert _faults("keep_freed_memory()") < 5000  # once 2048 for 8 arrays, and small change
    assert _faults("") > 20_000
