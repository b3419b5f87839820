"""What a check gives back and what is saved: immutable records, documented field by field.

The JSON schema of ``results.json`` is generated from these classes (``make schema``).
"""

from gelu_verify.records.base import Finding, FindingStatus, Record, Status
from gelu_verify.records.comparable import Comparable
from gelu_verify.records.elementwise import (
    PAIRS,
    Accuracy,
    AllowanceUse,
    BinadeMaximum,
    Certification,
    ClassCount,
    Examples,
    FormulaFound,
    FoundName,
    Point,
    ReferenceCertificate,
    RegionAccuracy,
    Reversals,
    Saturation,
    SpecialValue,
    Tightest,
)
from gelu_verify.records.fused import (
    ArithmeticEvidence,
    ArithmeticName,
    BatchDifference,
    BehavesLike,
    BoundAccuracy,
    CaseAccuracy,
    Fingerprint,
    FusedPoint,
    GradientAccuracy,
    Quantity,
)
from gelu_verify.records.results import SCHEMA_VERSION, Environment, KernelResult, Results

__all__ = [
    "PAIRS",
    "SCHEMA_VERSION",
    "Accuracy",
    "AllowanceUse",
    "ArithmeticEvidence",
    "ArithmeticName",
    "BatchDifference",
    "BehavesLike",
    "BinadeMaximum",
    "BoundAccuracy",
    "CaseAccuracy",
    "Certification",
    "ClassCount",
    "Comparable",
    "Environment",
    "Examples",
    "Finding",
    "FindingStatus",
    "Fingerprint",
    "FormulaFound",
    "FoundName",
    "FusedPoint",
    "GradientAccuracy",
    "KernelResult",
    "Point",
    "Quantity",
    "Record",
    "ReferenceCertificate",
    "RegionAccuracy",
    "Results",
    "Reversals",
    "Saturation",
    "SpecialValue",
    "Status",
    "Tightest",
]
