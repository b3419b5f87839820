"""Compare the errors of a kernel with earlier ones, region by region, and decide for a whole run.

Samples of other inputs are compared by tests: a change counts if it is significant after Holm's
correction over all comparisons of the run, and at least as large as a stated minimum. Errors at the
same inputs need no test: every difference is a fact, and only its size is asked.

Regions are never pooled: each is drawn by itself, and a pool would weigh them by how much was
drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gelu_verify.errors import EmptySampleError, UsageError
from gelu_verify.statistics import two_sample
from gelu_verify.statistics.change import DEFAULT, Change, Comparison, Quantity, Setting
from gelu_verify.statistics.distribution import ErrorDistribution
from gelu_verify.statistics.intervals import CONFIDENCE, Interval
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
    for pair in _shared(before, now, setting):
        old, new = pair.old, pair.new
        if old.count and new.count:
            found.append(pair.distribution(two_sample.same_law(old, new)))
        if pair.has_means:
            found.append(pair.bias(*two_sample.same_mean(_mean(old), _mean(new), CONFIDENCE)))
        counts = [(d.beyond(setting.limit_ulp), d.results) for d in (old, new)]
        found.append(pair.wrong(*two_sample.same_fraction(counts[0], counts[1], CONFIDENCE)))
    return found


def compare_identical(
    before: Distributions, now: Distributions, setting: Setting = DEFAULT
) -> list[Comparison]:
    """Compare errors at the same inputs: differences are facts, and are decided here.

    Raises UsageError for other regions or numbers of results: the inputs were not the same.
    """
    found = []
    for pair in _shared(before, now, setting):
        old, new = pair.old, pair.new
        if old.results != new.results:
            raise UsageError(
                f"comparison of {pair.region}: got {new.results} results, expected the "
                f"{old.results} of the same inputs. Compare them as samples."
            )
        facts = [pair.wrong()]
        if old.count and new.count:
            facts = [pair.distribution(), pair.bias(), *facts]
        found += [fact.decided() if old != new and fact.effect else fact for fact in facts]
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


@dataclass(frozen=True)
class _Pair:
    """The errors of one region before and now, and what is compared of them.

    p_value, interval: where they are samples; facts have none.
    """

    region: str
    old: ErrorDistribution
    new: ErrorDistribution
    setting: Setting

    @property
    def has_means(self) -> bool:
        """Whether both have enough errors for a test of their means."""
        return min(self.old.count, self.new.count) >= LEAST_FOR_MEAN

    def distribution(self, p_value: float | None = None) -> Comparison:
        """Compare the laws; improved only if errors became smaller, for samples beyond doubt."""
        before, now = self.old.mean_absolute(), self.new.mean_absolute()
        improved = now < before
        if p_value is not None:
            sizes = _mean(self.old, of_sizes=True), _mean(self.new, of_sizes=True)
            improved = self.has_means and (
                two_sample.same_mean(*sizes, confidence=CONFIDENCE)[1].high < 0.0
            )
        return Comparison(
            region=self.region,
            quantity=Quantity.DISTRIBUTION,
            before=before,
            now=now,
            effect=two_sample.distance(self.old, self.new),
            minimum_effect=self._least_shift(),
            improved=improved,
            p_value=p_value,
        )

    def bias(self, p_value: float | None = None, interval: Interval | None = None) -> Comparison:
        """Compare the mean errors; improved if they came nearer to 0."""
        before, now = self.old.mean(), self.new.mean()
        return Comparison(
            region=self.region,
            quantity=Quantity.BIAS,
            before=before,
            now=now,
            effect=now - before,
            minimum_effect=self._least_shift(),
            improved=abs(now) < abs(before),
            p_value=p_value,
            interval=interval,
        )

    def wrong(self, p_value: float | None = None, interval: Interval | None = None) -> Comparison:
        """Compare the fractions of results beyond the limit."""
        limit = self.setting.limit_ulp
        before, now = (d.beyond(limit) / d.results for d in (self.old, self.new))
        return Comparison(
            region=self.region,
            quantity=Quantity.WRONG,
            before=before,
            now=now,
            effect=now - before,
            minimum_effect=self.setting.minimum_fraction,
            improved=now < before,
            p_value=p_value,
            interval=interval,
        )

    def _least_shift(self) -> float:
        relative = self.setting.minimum_relative * self.old.mean_absolute()
        return max(self.setting.minimum_shift_ulp, relative)


def _shared(before: Distributions, now: Distributions, setting: Setting) -> Iterator[_Pair]:
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
        yield _Pair(region, old, new, setting)


def _mean(distribution: ErrorDistribution, *, of_sizes: bool = False) -> Mean:
    value = distribution.mean_absolute() if of_sizes else distribution.mean()
    return Mean(value, distribution.variance(of_sizes=of_sizes), distribution.count)
