"""What is said to prove exact values is what does."""

import dataclasses

import pytest
import torch

from gelu_verify import certification
from gelu_verify.checks import accuracy
from gelu_verify.records import Certification, ReferenceCertificate
from gelu_verify.reference import certificate
from gelu_verify.reference.certificate import source
from tests import faulty_kernels as kernels
from tests.cases import backward, case

COMMITTED = certificate.status()
#: As if the certificate had been made here.
HERE = dataclasses.replace(COMMITTED, environment=certification._here())


@pytest.fixture
def proof(monkeypatch):
    """What is said with a given status of the certificate."""

    def of(status, function=("erf", 1), bound=1e-7, on_gpu=False):
        monkeypatch.setattr(certification, "_status", lambda: status)
        return certification.of(*function, bound, on_gpu)

    return of


def test_function_is_certified_when_source_and_environment_are_those_of_the_certificate(proof):
    found = proof(HERE)
    assert found.level is Certification.CERTIFIED
    assert found.max_error_units == COMMITTED.max_error_units["erf:1"]
    assert (found.bound_ulp, found.source_hash) == (1e-7, source.source_hash())


@pytest.mark.parametrize("name", ["torch", "cpu_capability"])
def test_function_is_partly_certified_when_made_elsewhere(proof, name):
    other = dataclasses.replace(HERE, environment={**HERE.environment, name: "another"})
    found = proof(other)
    assert (found.level, found.max_error_units) == (Certification.PARTLY, None)
    assert "another" in found.reason
    assert torch.__version__ in found.reason


def test_function_is_partly_certified_when_zones_are_missing(proof):
    missing = dataclasses.replace(HERE, certified=False, incomplete=True, reason="not yet")
    assert proof(missing).level is proof(missing, on_gpu=True).level is Certification.PARTLY
    assert proof(missing).reason == "not yet"


def test_function_is_uncertified_when_the_source_changed(monkeypatch):
    monkeypatch.setattr(source, "source_hash", lambda: "0" * 64)
    certification._status.cache_clear()
    for on_gpu in (False, True):
        found = certification.of("tanh", 0, 1e-7, on_gpu)
        assert found.level is Certification.UNCERTIFIED
        assert "hash 000000000000" in found.reason
    certification._status.cache_clear()


def test_bound_stands_by_analysis_alone_when_float64_ran_on_a_gpu(proof):
    found = proof(HERE, on_gpu=True)
    assert (found.level, found.max_error_units) == (Certification.ANALYSIS, None)


def test_oracle_needs_no_certificate(proof):
    broken = dataclasses.replace(HERE, certified=False)
    assert proof(broken, bound=0.0) == certification.ORACLE


@pytest.mark.parametrize("name", ["fp64", "fp32", "fp8_e5m2"])
@pytest.mark.parametrize("of", [case, backward])
def test_accuracy_carries_what_proves_it(name, of, monkeypatch):
    monkeypatch.setattr(certification, "_status", lambda: HERE)
    kernel = kernels.correct if of is case else kernels.correct_backward
    found = accuracy.run(of(kernel, name)).fields["accuracy"]
    assert isinstance(found.certificate, ReferenceCertificate)
    expected = Certification.ORACLE if name == "fp64" else Certification.CERTIFIED
    assert found.certificate.level is expected
    # 16 to 18 units of 2^-53, or none: as a bound in ULP of 24 or 3 bits.
    digits = {"fp64": 0.0, "fp32": 2.0**-29, "fp8_e5m2": 2.0**-50}[name]
    assert 16 * digits <= found.certificate.bound_ulp <= 18 * digits
