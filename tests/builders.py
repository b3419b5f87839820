"""Small records built by hand."""

from gelu_verify.records import (
    Accuracy,
    Certification,
    Environment,
    Finding,
    FindingStatus,
    KernelResult,
    Point,
    ReferenceCertificate,
    Results,
    SpecialValue,
    Status,
)


def environment(**more):
    fields = {
        "gelu_verify": "0.1.0",
        "commit": "abc",
        "dirty": False,
        "date": "2026-01-01T00:00:00+00:00",
        "python": "3.11",
        "platform": "p",
        "processor": "c",
        "libraries": {"torch": "2.11"},
    }
    return Environment(**fields | more)


def accuracy(level, reason="why"):
    """Figures of one input, with a certificate of this level; none at all for None."""
    point = Point(inputs={"x": "1"}, bits={"x": "0x1"}, exact="1", actual="1", actual_bits="0x1",
                  error_ulp=0.0)  # fmt: skip
    proof = ReferenceCertificate(level=Certification(level), reason=reason) if level else None
    return Accuracy(
        sweep="quick", exhaustive=False, seed=0, inputs_digest="0", inputs=1, finite_inputs=1,
        count=1, max_error_ulp=0.0, worst_input="1", worst=point, mean_error_ulp=0.0,
        rms_error_ulp=0.0, quantiles={}, histogram={}, regions=(), classes=(), allowances=(),
        reference="r", certificate=proof,
    )  # fmt: skip


def finding(check, status, message, **more):
    return Finding(check=check, status=FindingStatus(status), message=message, **more)


def result(status, *findings, special=True, name="k", **more):
    row = SpecialValue(input="nan (0x7FC0)", expected="nan", actual=("nan",), status="passed")
    return KernelResult(
        name=name, target="m:k", operator="gelu", formula="erf", format="bf16", device="cpu",
        status=Status(status), contract="cancelling", findings=findings,
        special_values=(row,) if special else (), **more,
    )  # fmt: skip


def results(*kernels, **more):
    return Results(environment=environment(**more), kernels=kernels)
