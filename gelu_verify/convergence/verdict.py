"""Runs to verdict: endpoints against a margin from the noise floor, drift, gradients, sentences.

The margin of an endpoint is a quarter of its noise floor: the larger of its standard deviation over
the reference's seeds and the root mean square of noise arm − reference. A mean shifted by a quarter
of the deviation makes a run with the kernel the worse of two in 57 % of the cases, Φ(¼/√2), where
50 % are chance. Accuracy has at least the margin of one validation example, its resolution.

The fourth endpoint is the gradient's relative error at the arm's own weights. Over T steps an error
that is always there adds up as T, the sampling noise of minibatches as √T: its floor is that noise,
the relative deviation of one minibatch's gradient over √T. What stays below a quarter of it moves a
run by less than drawing other minibatches does.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gelu_verify.convergence.probes import cosine, relative_distance
from gelu_verify.convergence.records import (
    Arm,
    Drift,
    Endpoint,
    GradientTest,
    Run,
    Verdict,
)
from gelu_verify.statistics import equivalence

#: Of the noise floor, in the module's docstring.
MARGIN_SHARE = 0.25
#: With which seeds that are needed, and the smallest effect that is seen, are stated.
POWER = 0.9

Runs = dict[tuple[Arm, int], Run]


@dataclass(frozen=True)
class Decided:
    """A verdict with what decided it."""

    verdict: Verdict
    reasons: tuple[str, ...]
    endpoints: tuple[Endpoint, ...]
    drift: tuple[Drift, ...]
    gradients: GradientTest | None
    diverged: dict[Arm, int]


def area(run: Run) -> float:
    """Return the area under the validation curve over its length: a mean loss, by trapezoids."""
    parts = zip(run.steps, run.losses, run.steps[1:], run.losses[1:], strict=False)
    total = sum((b - a) * (low + high) / 2 for a, low, b, high in parts)
    return total / (run.steps[-1] - run.steps[0])


def gradient_error(run: Run) -> float:
    """Return the root mean square over the probes of the gradient's relative error."""
    return _rms([probe.gradient_error for probe in run.probes])


#: Of the validation set: final loss, area under its curve, final accuracy; then the gradient.
LOSS, AREA, ACCURACY, GRADIENT = "final loss", "loss area", "accuracy", "gradient error"
ENDPOINTS: dict[str, Callable[[Run], float]] = {
    LOSS: lambda run: run.losses[-1],
    AREA: area,
    ACCURACY: lambda run: run.accuracies[-1],
    GRADIENT: gradient_error,
}


def decide(runs: Runs, alpha: float) -> Decided:
    """Return the verdict on all runs of an experiment, every arm with the same seeds."""
    seeds = sorted({seed for _, seed in runs})
    diverged = {
        arm: sum(runs[arm, seed].first_nonfinite is not None for seed in seeds) for arm in Arm
    }
    whole = [s for s in seeds if all(runs[arm, s].first_nonfinite is None for arm in Arm)]
    endpoints: tuple[Endpoint, ...] = ()
    if len(whole) >= equivalence.FEWEST_PAIRS:
        found = (endpoint(name, runs, whole, alpha) for name in ENDPOINTS)
        endpoints = tuple(one for one in found if one is not None)
    gradients = gradient_test(runs, seeds, alpha)
    verdict, reasons = _judged(endpoints, diverged, gradients, len(seeds), alpha)
    return Decided(verdict, reasons, endpoints, drift(runs, whole), gradients, diverged)


def endpoint(name: str, runs: Runs, seeds: Sequence[int], alpha: float) -> Endpoint | None:
    """Return the comparison of one endpoint; None where it is the same number for every seed."""
    of = ENDPOINTS[name]
    reference = [of(runs[Arm.REFERENCE, seed]) for seed in seeds]

    def differences(arm: Arm) -> tuple[float, ...]:
        pairs = zip(seeds, reference, strict=True)
        return tuple(of(runs[arm, seed]) - base for seed, base in pairs)

    noise_rms = _rms(differences(Arm.NOISE))
    margin = MARGIN_SHARE * max(_scatter(name, runs, seeds), noise_rms)
    if name == ACCURACY:
        agreement = runs[Arm.REFERENCE, seeds[0]].agreement
        margin = max(margin, 1 / agreement.examples if agreement else 0.0)
    if not margin > 0:
        return None
    paired = equivalence.compare(differences(Arm.KERNEL), margin, alpha)
    size, spread = len(seeds), paired.deviation
    return Endpoint(
        name=name,
        pairs=size,
        scatter=_scatter(name, runs, seeds),
        noise_rms=noise_rms,
        margin=margin,
        differences=differences(Arm.KERNEL),
        noise_differences=differences(Arm.NOISE),
        eager_differences=differences(Arm.EAGER),
        mean=paired.mean,
        low=paired.low,
        high=paired.high,
        p_equivalent=paired.p_equivalent,
        p_different=paired.p_different,
        power=equivalence.power(size, 0.0, spread, margin, alpha),
        smallest_seen=equivalence.smallest_seen(
            size, spread, margin, alpha / len(ENDPOINTS), POWER
        ),
        pairs_needed=equivalence.pairs_needed(paired.mean, spread, margin, alpha, POWER),
    )


def _scatter(name: str, runs: Runs, seeds: Sequence[int]) -> float:
    """Return what an endpoint scatters by with the seed; of the gradient, with the minibatches."""
    reference = [runs[Arm.REFERENCE, seed] for seed in seeds]
    if name != GRADIENT:
        return statistics.stdev(ENDPOINTS[name](run) for run in reference)
    noise = [_rms([p.batch_noise or 0.0 for p in run.probes]) for run in reference]
    return statistics.median(noise) / math.sqrt(reference[0].steps[-1])


def gradient_test(runs: Runs, seeds: Sequence[int], alpha: float) -> GradientTest | None:
    """Return whether the kernel's gradients are worse than those with one ULP of noise, or torch's.

    None where an error is 0 or no number.
    """
    kernel, noise, eager = (
        [gradient_error(runs[arm, seed]) for seed in seeds]
        for arm in (Arm.KERNEL, Arm.NOISE, Arm.EAGER)
    )
    if not all(0 < e < math.inf for e in (*kernel, *noise, *eager)):
        return None
    ratio, p_value = _larger(kernel, noise)
    eager_ratio, eager_p_value = _larger(kernel, eager)
    return GradientTest(
        ratio=ratio,
        p_value=p_value,
        relative_error=statistics.median(kernel),
        told_apart=p_value < alpha,
        eager_ratio=eager_ratio,
        eager_p_value=eager_p_value,
    )


def _larger(actual: Sequence[float], others: Sequence[float]) -> tuple[float, float]:
    """Return the median of actual/other, and p of a paired one-sided t test of its logarithm."""
    from scipy import stats

    logs = [math.log(a / o) for a, o in zip(actual, others, strict=True)]
    if max(logs) == min(logs):  # the same ratio for every seed: it is known
        p_value = float(logs[0] <= 0)
    else:
        p_value = float(stats.ttest_1samp(logs, 0.0, alternative="greater").pvalue)
    return math.exp(statistics.median(logs)), p_value


def drift(runs: Runs, seeds: Sequence[int]) -> tuple[Drift, ...]:
    """Return how far every arm is from the exact one at each probe, medians over seeds."""
    if not seeds:
        return ()
    rows = []
    for arm in (Arm.REFERENCE, Arm.EAGER, Arm.NOISE, Arm.KERNEL):
        for index, first in enumerate(runs[arm, seeds[0]].probes):
            pairs = [
                (runs[arm, seed].probes[index], runs[Arm.EXACT64, seed].probes[index])
                for seed in seeds
            ]
            row = Drift(
                arm=arm,
                step=first.step,
                logits=_median(relative_distance(a.logits, e.logits) for a, e in pairs),
                gradient_norm=_median(a.gradient_norm / e.gradient_norm - 1 for a, e in pairs),
                gradient_cosine=_median(cosine(a.gradient, e.gradient) for a, e in pairs),
                gradient_error=_median(a.gradient_error for a, _ in pairs),
            )
            rows.append(row)
    return tuple(rows)


def _rms(values: Sequence[float]) -> float:
    return math.sqrt(sum(v * v for v in values) / len(values))


def _median(values: object) -> float:
    return float(statistics.median(list(values)))  # type: ignore[call-overload]


def _judged(
    endpoints: tuple[Endpoint, ...],
    diverged: dict[Arm, int],
    gradients: GradientTest | None,
    seeds: int,
    alpha: float,
) -> tuple[Verdict, tuple[str, ...]]:
    """Return the verdict and why.

    Different: a run lost its loss more often than with one ULP of noise, or an endpoint lies beyond
    its margin (Bonferroni over the endpoints). Equivalent: every endpoint within it.
    """
    reasons = []
    sound = max(diverged[arm] for arm in Arm if arm is not Arm.KERNEL)
    if diverged[Arm.KERNEL] > sound:
        reasons.append(
            f"diverged from {diverged[Arm.KERNEL]} of {seeds} seeds, no other arm from more "
            f"than {sound}"
        )
    beyond = [e for e in endpoints if e.p_different < alpha / len(ENDPOINTS)]
    reasons += [
        f"{e.name}: differs by {e.mean:+.3g} ({e.low:+.3g} to {e.high:+.3g}), beyond the margin "
        f"of {e.margin:.3g}, p = {e.p_different:.1e}"
        for e in sorted(beyond, key=lambda e: e.p_different)
    ]
    if reasons:
        return Verdict.DIFFERENT, (*reasons, *_about_gradients(gradients))
    open_ones = [e for e in endpoints if not e.p_equivalent < alpha]
    if endpoints and not open_ones and not any(diverged.values()):
        text = "; ".join(f"{e.name} {e.mean:+.2g} of ±{e.margin:.2g}" for e in endpoints)
        return Verdict.EQUIVALENT, (f"within every margin: {text}", *_about_gradients(gradients))
    reasons = [
        f"{e.name}: {e.mean:+.3g} ({e.low:+.3g} to {e.high:+.3g}) against a margin of "
        f"{e.margin:.3g}; {_needed(e.pairs_needed)}"
        for e in open_ones
    ] or [f"{seeds} seeds, some without a finite loss; use a lower learning rate"]
    return Verdict.NOT_ENOUGH_SEEDS, (*reasons, *_about_gradients(gradients))


def _needed(pairs: int | None) -> str:
    return f"about {pairs:,} seeds would decide" if pairs else "more than 10,000 seeds are needed"


def _about_gradients(test: GradientTest | None) -> tuple[str, ...]:
    if test is None:
        return ()
    apart = f"p = {test.p_value:.1e}" if test.told_apart else "not told apart"
    return (
        f"gradients are off by {test.relative_error:.2g}: {test.ratio:.3g} times as much as with "
        f"one ULP of noise ({apart}), {test.eager_ratio:.3g} times as much as torch's own "
        f"(p = {test.eager_p_value:.1e})",
    )
