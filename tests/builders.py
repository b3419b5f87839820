"""Small records built by hand."""

from gelu_verify.records import (
    Environment,
    Finding,
    FindingStatus,
    KernelResult,
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
