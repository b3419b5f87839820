"""A baseline as it is kept: the figures that a reviewer reads in a diff, and their provenance."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gelu_verify.baseline.key import Key, device_class
from gelu_verify.errors import UsageError
from gelu_verify.records import Comparable, Environment, KernelResult, Point, Record, Status

SCHEMA_VERSION = 2
#: Libraries whose version decides what a kernel computes.
LIBRARIES = ("torch", "triton")

_Count = Annotated[int, Field(ge=0, le=1 << 64)]
_Text = Annotated[str, Field(max_length=2000)]


class RegionFigures(Record):
    """ULP figures of one region of x."""

    count: _Count
    max_error_ulp: float
    mean_error_ulp: float = Field(description="signed")
    rms_error_ulp: float
    worst_input: _Text = Field(description="decimal and bit pattern")


class Figures(Record):
    """How far an elementwise kernel was off, over one sweep."""

    sweep: _Text
    exhaustive: bool
    seed: int
    inputs_digest: _Text = Field(description="equal inputs, equal digest")
    inputs: _Count
    max_error_ulp: float
    worst: Point
    mean_error_ulp: float
    rms_error_ulp: float
    quantiles: dict[str, float]
    regions: dict[str, RegionFigures]
    classes: dict[str, _Count] = Field(description="class of failure to how often it was seen")


class BoundFigures(Record):
    """How much of its derived bounds a fused kernel used, over a fixed list of cases."""

    cases: _Count
    max_ratio: float
    worst_case: _Text
    gradients: dict[str, float] = Field(description="argument to the largest ratio")


class Measurement(Record):
    """One operator of a kernel: itself, or its backward through autograd."""

    operator: _Text
    via: _Text | None
    status: Status
    contract: _Text = Field(description="the contract it was held to")
    tightest: _Text | None = Field(description="strictest built-in contract that held")
    elementwise: Figures | None
    bound: BoundFigures | None
    special_values: dict[str, _Text] = Field(description="input to the results seen")
    comparable: Comparable | None = Field(description="what tells changed results from the same")

    @classmethod
    def of(cls, result: KernelResult) -> Measurement:
        """Return what is kept of a result."""
        return cls(
            operator=result.operator,
            via=result.via,
            status=result.status,
            contract=result.contract,
            tightest=result.tightest.contract if result.tightest else None,
            elementwise=_figures(result),
            bound=_bound(result),
            comparable=result.comparable,
            special_values={s.input: " or ".join(s.actual) for s in result.special_values},
        )


class Provenance(Record):
    """Where, when and with what a baseline was measured."""

    gelu_verify: _Text
    commit: _Text | None
    dirty: bool | None = Field(description="whether the checkout had other changes")
    date: _Text = Field(description="UTC, ISO 8601")
    python: _Text
    processor: _Text
    device: _Text | None = Field(description="accelerator, if one was used")
    driver: _Text | None
    simulated: bool = Field(description="ran in Triton's CPU interpreter")
    libraries: dict[str, _Text]

    @classmethod
    def of(cls, environment: Environment, simulated: bool) -> Provenance:
        """Return what is kept of an environment."""
        same = ("gelu_verify", "commit", "dirty", "date", "python", "processor", "libraries")
        fields = {name: getattr(environment, name) for name in (*same, "device", "driver")}
        return cls(**fields, simulated=simulated)


class Baseline(Record):
    """One kernel and format on one class of device."""

    schema_version: Literal[2] = 2
    key: Key
    device_class: _Text
    provenance: Provenance
    measurements: tuple[Measurement, ...] = Field(min_length=1, max_length=16)

    def measurement(self, operator: str, via: str | None) -> Measurement | None:
        """Return the measurement of an operator, if there is one."""
        found = (m for m in self.measurements if (m.operator, m.via) == (operator, via))
        return next(found, None)


def of(results: tuple[KernelResult, ...], environment: Environment) -> Baseline:
    """Return the baseline of results that share key and device.

    Raises :class:`UsageError` for one that does not hold: a contract is a ceiling that no baseline
    can bless.
    """
    for result in results:
        if not result.status.holds:
            raise UsageError(
                f"baseline: got {result.label} {result.operator} {result.format} that is "
                f"{result.status.value.replace('_', ' ')}, expected one that keeps "
                f"{result.contract}. Repair the kernel or change its contract."
            )
    first = results[0]
    return Baseline(
        key=Key.of_result(first),
        device_class=device_class(environment, first.device),
        provenance=Provenance.of(environment, any(r.simulated for r in results)),
        measurements=tuple(Measurement.of(result) for result in results),
    )


def _figures(result: KernelResult) -> Figures | None:
    a = result.accuracy
    if a is None:
        return None
    return Figures(
        sweep=a.sweep,
        exhaustive=a.exhaustive,
        seed=a.seed,
        inputs_digest=a.inputs_digest,
        inputs=a.inputs,
        max_error_ulp=a.max_error_ulp,
        worst=a.worst,
        mean_error_ulp=a.mean_error_ulp,
        rms_error_ulp=a.rms_error_ulp,
        quantiles=a.quantiles,
        regions={
            r.region: RegionFigures(
                count=r.count,
                max_error_ulp=r.max_error_ulp,
                mean_error_ulp=r.mean_error_ulp,
                rms_error_ulp=r.rms_error_ulp,
                worst_input=r.worst.shown if r.worst else "-",
            )
            for r in a.regions
            if r.count
        },
        classes={c.name: c.count for c in a.classes},
    )


def _bound(result: KernelResult) -> BoundFigures | None:
    b = result.bound
    if b is None:
        return None
    return BoundFigures(
        cases=b.cases,
        max_ratio=b.max_ratio,
        worst_case=b.worst.case if b.worst else "-",
        gradients={g.argument: g.bound.max_ratio for g in result.gradients},
    )
