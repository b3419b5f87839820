import pytest

from gelu_verify.convergence import run as experiments
from tests.convergence import kernels
from tests.convergence.experiments import of


@pytest.fixture(scope="session")
def sound(tmp_path_factory):
    """Training with torch's own kernel: the record and its ledger."""
    ledger = tmp_path_factory.mktemp("sound") / "ledger.sqlite"
    return experiments.run(of(kernels.gelu, ledger), lambda *_: None), ledger
