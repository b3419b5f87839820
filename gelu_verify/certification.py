"""What stands behind the exact values of a measurement: a certificate, an analysis, or the oracle.

The certificate is of float64 arithmetic on a CPU, for one source, one torch and one instruction
set. Elsewhere the same bound rests on the analysis in the docstrings of ``reference.tails``.
"""

from __future__ import annotations

from functools import cache

from gelu_verify.records import Certification, ReferenceCertificate
from gelu_verify.reference import certificate
from gelu_verify.reference.certificate import CertificateStatus
from gelu_verify.reference.certificate.source import source_hash

#: Of values that came from mpmath: no certificate of float64 is needed.
ORACLE = ReferenceCertificate(level=Certification.ORACLE, reason="mpmath, 200 bits")


def of(formula: str, derivative: int, bound_ulp: float, on_gpu: bool) -> ReferenceCertificate:
    """Return what stands behind a reference in this process; needs torch, loaded by then.

    formula, derivative: the function, the derivative of order 0 or 1 of ``erf``, say.
    bound_ulp: the reference's bound in ULP of the kernel's format; 0 for the oracle.
    on_gpu: whether float64 was evaluated on a GPU.
    """
    if bound_ulp == 0.0:
        return ORACLE
    found = _status()
    level, reason = _standing(found, on_gpu)
    certified = level is Certification.CERTIFIED
    return ReferenceCertificate(
        level=level,
        reason=reason,
        bound_ulp=bound_ulp,
        max_error_units=found.max_error_units[f"{formula}:{derivative}"] if certified else None,
        source_hash=source_hash(),
    )


def _standing(found: CertificateStatus, on_gpu: bool) -> tuple[Certification, str]:
    """Return the level and one line that says why it is no higher."""
    if found.incomplete:
        return Certification.PARTLY, found.reason
    if not found.certified:
        return Certification.UNCERTIFIED, found.reason
    if on_gpu:
        why = "float64 was evaluated on the GPU, the certificate is of a CPU: bound by analysis"
        return Certification.ANALYSIS, why
    here, made = _here(), found.environment
    if any(made[name] != value for name, value in here.items()):
        why = (
            f"the certificate was made with torch {made['torch']}, {made['cpu_capability']}; here "
            f"torch {here['torch']}, {here['cpu_capability']}, for whose exp the bound is by "
            "analysis"
        )
        return Certification.PARTLY, why
    return Certification.CERTIFIED, found.reason


@cache
def _status() -> CertificateStatus:
    """Read the certificate once a process."""
    return certificate.status()


def _here() -> dict[str, str]:
    import torch

    return {"torch": torch.__version__, "cpu_capability": torch.backends.cpu.get_cpu_capability()}
