"""False alarms and power of the gate's sampled decision, as Markdown."""

from __future__ import annotations

from gelu_verify.report.numbers import figure
from gelu_verify.statistics.change import Setting
from gelu_verify.statistics.false_alarms import AlarmReport
from gelu_verify.statistics.intervals import Interval
from gelu_verify.statistics.power import Fault, PowerReport, RegionPower
from gelu_verify.statistics.run import GateAlarms


def document(found: GateAlarms) -> str:
    """Return the report of one kernel and format as a Markdown document."""
    where = found.environment
    libraries = ", ".join(f"{name} {version}" for name, version in where.libraries.items())
    lines = [
        f"# {found.kernel}, {found.operator}, {found.format}: false alarms and power of the gate",
        "",
        f"{where.date}, {where.device or where.processor} ({where.instruction_set}), "
        f"Python {where.python}, {libraries}.",
        "",
        _settings(found.setting, found.per_region),
        "",
        *_alarms(found.alarms, found.setting, found.alarms_from),
        *(_power(found.power, found.pool) if found.power else []),
    ]
    return "\n".join(lines) + "\n"


def sentence(alarms: AlarmReport) -> str:
    """Say in one line how often the gate was wrong."""
    return (
        f"{alarms.alarms} false alarms in {alarms.decisions:,} decisions: {_percent(alarms.rate)}"
    )


def _settings(setting: Setting, per_region: int) -> str:
    return (
        f"Setting: {per_region:,} inputs of each region; risk {setting.alpha:g} for a whole run "
        f"(Holm); a change counts from {setting.minimum_shift_ulp:g} ULP or "
        f"{setting.minimum_relative:.0%} of the mean |error|, or {setting.minimum_fraction:g} of "
        f"the results off by {setting.limit_ulp:g} ULP and more."
    )


def _alarms(alarms: AlarmReport, setting: Setting, origin: str) -> list[str]:
    levels = "; ".join(
        f"{fraction:.4f} up to {level}" for level, fraction in alarms.p_values_up_to.items()
    )
    return [
        "## False alarms",
        "",
        f"- The same kernel on both sides, {origin}, seeds from {alarms.first_seed} on, two of its "
        "own for each decision.",
        f"- **{sentence(alarms)}.**",
        f"- Significant at {setting.alpha:g}, whatever the size and way: {alarms.significant}, "
        f"{_percent(alarms.significant_rate)}.",
        f"- Fraction of the {alarms.comparisons:,} p-values before correction: {levels}.",
        "",
    ]


def _power(power: PowerReport, pool: int) -> list[str]:
    return [
        "## Power",
        "",
        f"The smallest fault of one region that {power.wanted:.0%} of simulated gates see, in a "
        f"run of {power.comparisons} comparisons; from {pool:,} measured errors of each region. "
        "The power at that size is given with its 95 % interval.",
        "",
        "| region | mean \\|error\\|, ULP | smallest shift, ULP | power | "
        "smallest fraction wrong | power |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_row(region, power) for region in dict.fromkeys(r.region for r in power.regions)),
        "",
        "The curves (size: seen of tried; a size is given up once 99 % is out of reach):",
        "",
        *(f"- {r.region}, {r.fault.value}: {_curve(r)}" for r in power.regions),
    ]


def _row(region: str, power: PowerReport) -> str:
    by_fault = {r.fault: r for r in power.regions if r.region == region}
    cells = [region, figure(by_fault[Fault.SHIFT].mean_absolute_ulp)]
    for fault in Fault:
        found = by_fault[fault]
        cells.append("none" if found.smallest is None else figure(found.smallest))
        cells.append("-" if found.power is None else _percent(found.power))
    return "| " + " | ".join(cells) + " |"


def _curve(found: RegionPower) -> str:
    return ", ".join(f"{figure(p.size)}: {p.detected}/{p.trials}" for p in found.curve)


def _percent(rate: Interval) -> str:
    return f"{rate.estimate:.3%} ({rate.confidence:.0%} interval {rate.low:.3%} to {rate.high:.3%})"
