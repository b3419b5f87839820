"""Whether a kernel ran in Triton's CPU interpreter."""

import os
import subprocess
import sys

import pytest
import torch

from gelu_verify import formats, operators
from gelu_verify.kernels import interpreter
from gelu_verify.kernels.subject import Subject

pytest.importorskip("triton", reason="Triton is not installed here")
simulated = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1", reason="kernels are compiled on this machine"
)


@simulated
def test_subject_is_simulated_when_a_triton_kernel_launches():
    from gelu_verify.kernels import canary_kernels

    def run(function):
        cpu, gelu = torch.device("cpu"), operators.get("gelu")
        subject = Subject("k", "erf", formats.get("fp32"), cpu, function, gelu)
        subject.call(torch.ones(4))
        return subject.simulated

    before = interpreter.launches()
    assert run(canary_kernels.copy)
    assert interpreter.launches() == before + 1
    assert not run(torch.nn.functional.gelu)


def test_triton_is_not_loaded_when_launches_are_counted():
    code = (
        "import sys; from gelu_verify.kernels import interpreter as i; "
        "print(i.launches(), 'triton' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0 False\n"
