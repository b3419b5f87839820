"""Small records built by hand."""

from gelu_verify.records import (
    Accuracy,
    Certification,
    ClassCount,
    Environment,
    Finding,
    FindingStatus,
    KernelResult,
    Point,
    ReferenceCertificate,
    RegionAccuracy,
    Results,
    SpecialValue,
    Status,
    Tightest,
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
        "instruction_set": "AVX2",
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
    fields = {
        "name": name, "target": "m:k", "operator": "gelu", "formula": "erf", "format": "bf16",
        "device": "cpu", "status": Status(status), "contract": "cancelling", "findings": findings,
        "special_values": (row,) if special else (),
    }  # fmt: skip
    return KernelResult(**fields | more)


def results(*kernels, **more):
    return Results(environment=environment(**more), kernels=kernels)


REGIONS = {"tail": 2.0, "centre": 0.5}


def measured(regions=REGIONS, classes=(), tightest="tail_accurate", digest="d0", **more):
    """A result that holds, with these largest errors by region and classes of failure."""
    points = {
        name: Point(inputs={"x": "-4.5"}, bits={"x": "0xC090"}, exact="-1.5e-05", actual="-1.4e-05",
                    actual_bits="0xB76B", error_ulp=size)
        for name, size in regions.items()
    }  # fmt: skip
    worst = points[max(regions, key=regions.get)]
    figures = accuracy("certified").model_copy(
        update={
            "max_error_ulp": max(regions.values()),
            "worst": worst,
            "inputs_digest": digest,
            "regions": tuple(
                RegionAccuracy(region=name, count=9, max_error_ulp=size, mean_error_ulp=0.0,
                               rms_error_ulp=size, clipped=0, worst=points[name])
                for name, size in regions.items()
            ),
            "classes": tuple(
                ClassCount(name=name, count=count, first=worst, worst=worst)
                for name, count in dict(classes).items()
            ),
        }
    )  # fmt: skip
    best = Tightest(contract=tightest, max_error_ulp=max(regions.values()), cancellation=None)
    return result("passed", name=more.pop("name", "k.py:f"), tightest=best,
                  **{"accuracy": figures} | more)  # fmt: skip
