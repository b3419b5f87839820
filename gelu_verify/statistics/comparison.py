"""Compare the errors of a kernel with earlier ones, region by region, and decide for a whole run.

Samples of other inputs are compared by tests: a change counts if it is significant after Holm's
correction over all comparisons of the run, and at least as large as a stated minimum. Errors at the
same inputs need no test: every difference is a fact, and only its size is asked.

Regions are never pooled: each is drawn by itself, and a pool would weigh them by how much was
drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gelu_verify.errors import EmptySampleError, UsageError
from gelu_verify.statistics import two_sample
from gelu_verify.statistics.change import DEFAULT, Change, Comparison, Quantity, Setting
from gelu_verify.statistics.distribution import ErrorDistribution
from gelu_verify.statistics.intervals import CONFIDENCE
from gelu_verify.statistics.sample import Sample
from gelu_verify.statistics.two_sample import Mean

Distributions = Mapping[str, ErrorDistribution]

#: Fewer errors have no test of their mean: Welch's needs the central limit theorem.
LEAST_FOR_MEAN = 30


def compare(before: Sample, now: Sample, setting: Setting = DEFAULT) -> list[Comparison]:
    """Compare two samples: facts where their inputs are the same, else tests for ``holm``.

    Raises UsageError for samples of other regions: those of another formula or format.
    """
    same = before.inputs_digest == now.inputs_digest
    return (compare_identical if same else compare_samples)(before.regions, now.regions, setting)


def compare_samples(
    before: Distributions, now: Distributions, setting: Setting = DEFAULT
) -> list[Comparison]:
    """Compare independent samples of each region; ``holm`` decides, for all of a run together.

    before, now: region to the errors at inputs drawn independently by one law. Raises UsageError
    for other regions, EmptySampleError for a region without a result on one side.
    """
    found = []
    for region, old, new in _shared(before, now):
        if old.count and new.count:
            p_value = two_sample.same_law(old, new)
            found.append(_distribution(region, old, new, setting, p_value))
        if min(old.count, new.count) >= LEAST_FOR_MEAN:
            p_value, interval = two_sample.same_mean(_mean(old), _mean(new), CONFIDENCE)
            bias = _bias(region, old, new, setting, p_value)
            found.append(bias.model_copy(update={"interval": interval}))
        counts = [(d.beyond(setting.limit_ulp), d.results) for d in (old, new)]
        p_value, interval = two_sample.same_fraction(counts[0], counts[1], CONFIDENCE)
        wrong = _wrong(region, old, new, setting, p_value)
        found.append(wrong.model_copy(update={"interval": interval}))
    return found


def compare_identical(
    before: Distributions, now: Distributions, setting: Setting = DEFAULT
) -> list[Comparison]:
    """Compare errors at the same inputs: differences are facts, and are decided here.

    Raises UsageError for other regions or numbers of results: the inputs were not the same.
    """
    found = []
    for region, old, new in _shared(before, now):
        if old.results != new.results:
            raise UsageError(
                f"comparison of {region}: got {new.results} results, expected the {old.results} "
                "of the same inputs. Compare them as samples."
            )
        quantities = [_wrong(region, old, new, setting)]
        if old.count and new.count:
            quantities.insert(0, _bias(region, old, new, setting))
            quantities.insert(0, _distribution(region, old, new, setting))
        found += [fact.decided() if old != new and fact.effect else fact for fact in quantities]
    return found


def holm(comparisons: Sequence[Comparison], setting: Setting = DEFAULT) -> list[Comparison]:
    """Return all comparisons of a run, in order, with adjusted p-values and what they say.

    The i-th smallest of m p-values is adjusted to ``max_{j<=i} min(1, (m - j + 1)·p_j)`` (Holm
    1979). Rejecting those up to alpha keeps the risk of any false alarm in the run at alpha,
    whatever the dependence of the tests. Facts (no p-value) stay as they are.
    """
    tested = [(c.p_value, i) for i, c in enumerate(comparisons) if c.p_value is not None]
    decided = list(comparisons)
    adjusted = 0.0
    for rank, (p_value, index) in enumerate(sorted(tested)):
        adjusted = max(adjusted, min(1.0, (len(tested) - rank) * p_value))
        comparison = comparisons[index]
        decided[index] = (
            comparison.model_copy(update={"adjusted_p": adjusted, "change": Change.NONE})
            if adjusted > setting.alpha
            else comparison.decided(adjusted)
        )
    return decided


def _shared(
    before: Distributions, now: Distributions
) -> Iterator[tuple[str, ErrorDistribution, ErrorDistribution]]:
    """Yield the regions that have results, in the order of ``before``."""
    if before.keys() != now.keys():
        raise UsageError(
            f"comparison: got regions {', '.join(now)}, expected {', '.join(before)}. "
            "Measure both with the same formula and format."
        )
    for region, old in before.items():
        new = now[region]
        if not old.results and not new.results:
            continue
        if not old.results or not new.results:
            raise EmptySampleError(
                f"comparison of {region}: got {new.results} results now and {old.results} before, "
                "expected some of each."
            )
        yield region, old, new


def _mean(distribution: ErrorDistribution, *, of_sizes: bool = False) -> Mean:
    value = distribution.mean_absolute() if of_sizes else distribution.mean()
    return Mean(value, distribution.variance(of_sizes=of_sizes), distribution.count)


def _distribution(
    region: str,
    old: ErrorDistribution,
    new: ErrorDistribution,
    setting: Setting,
    p_value: float | None = None,
) -> Comparison:
    """Compare the laws; improved only if errors became smaller, for samples beyond doubt."""
    improved = new.mean_absolute() < old.mean_absolute()
    if p_value is not None:
        sizes = _mean(old, of_sizes=True), _mean(new, of_sizes=True)
        improved = min(old.count, new.count) >= LEAST_FOR_MEAN and (
            two_sample.same_mean(*sizes, confidence=CONFIDENCE)[1].high < 0.0
        )
    return Comparison(
        region=region,
        quantity=Quantity.DISTRIBUTION,
        before=old.mean_absolute(),
        now=new.mean_absolute(),
        effect=two_sample.distance(old, new),
        minimum_effect=_least_shift(old, setting),
        improved=improved,
        p_value=p_value,
    )


def _bias(
    region: str,
    old: ErrorDistribution,
    new: ErrorDistribution,
    setting: Setting,
    p_value: float | None = None,
) -> Comparison:
    before, now = old.mean(), new.mean()
    return Comparison(
        region=region,
        quantity=Quantity.BIAS,
        before=before,
        now=now,
        effect=now - before,
        minimum_effect=_least_shift(old, setting),
        improved=abs(now) < abs(before),
        p_value=p_value,
    )


def _wrong(
    region: str,
    old: ErrorDistribution,
    new: ErrorDistribution,
    setting: Setting,
    p_value: float | None = None,
) -> Comparison:
    before, now = (d.beyond(setting.limit_ulp) / d.results for d in (old, new))
    return Comparison(
        region=region,
        quantity=Quantity.WRONG,
        before=before,
        now=now,
        effect=now - before,
        minimum_effect=setting.minimum_fraction,
        improved=now < before,
        p_value=p_value,
    )


def _least_shift(before: ErrorDistribution, setting: Setting) -> float:
    relative = setting.minimum_relative * before.mean_absolute()
    return max(setting.minimum_shift_ulp, relative)
