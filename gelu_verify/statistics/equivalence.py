"""Is the mean of paired differences inside a margin, outside it, or not known yet: TOST.

For paired differences d_1 … d_n with mean m and standard error e = s/√n (n − 1 degrees of
freedom): equivalent where both one-sided t tests of |mean| >= margin reject (Schuirmann 1987);
different where the test of |mean| <= margin rejects. Each errs with probability at most alpha
where the differences are normal; between the two more pairs are needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gelu_verify.errors import EmptySampleError

#: Fewer pairs leave the standard deviation unknown.
FEWEST_PAIRS = 3
#: Nobody trains with more seeds than this.
MOST_PAIRS = 10_000
#: Of the quadrature over s, whose integrand is smooth and a dozen deviations wide.
_NODES = 120


@dataclass(frozen=True)
class Paired:
    """What paired differences say about a margin.

    mean, deviation: of the differences. low, high: confidence interval of the mean, 1 − 2·alpha.
    p_equivalent: of the two one-sided tests together. p_different: that the mean is inside.
    """

    pairs: int
    mean: float
    deviation: float
    low: float
    high: float
    p_equivalent: float
    p_different: float


def compare(differences: Sequence[float], margin: float, alpha: float) -> Paired:
    """Return what paired differences say about ``|mean| < margin``.

    Raises EmptySampleError for fewer than three pairs, or a difference or margin that is no number.
    """
    import numpy as np
    from scipy import stats

    values = np.asarray(differences, dtype=np.float64)
    if len(values) < FEWEST_PAIRS or not np.isfinite(values).all() or not margin > 0:
        raise EmptySampleError(
            f"equivalence: got {len(values)} differences and margin {margin:g}, "
            f"expected at least {FEWEST_PAIRS} finite ones and a margin above 0."
        )
    mean, deviation = float(values.mean()), float(values.std(ddof=1))
    error, freedom = deviation / math.sqrt(len(values)), len(values) - 1
    if error == 0.0:  # the same difference for every pair: its mean is known
        inside, outside = float(abs(mean) >= margin), float(abs(mean) <= margin)
        return Paired(len(values), mean, 0.0, mean, mean, inside, outside)
    below, above = (mean - margin) / error, (mean + margin) / error
    spread = float(stats.t.ppf(1 - alpha, freedom)) * error
    return Paired(
        pairs=len(values),
        mean=mean,
        deviation=deviation,
        low=mean - spread,
        high=mean + spread,
        p_equivalent=float(max(stats.t.cdf(below, freedom), stats.t.sf(above, freedom))),
        p_different=min(
            1.0, 2 * float(min(stats.t.sf(below, freedom), stats.t.cdf(above, freedom)))
        ),
    )


def power(pairs: int, shift: float, deviation: float, margin: float, alpha: float) -> float:
    """Return how probably the two one-sided tests hold for a true mean ``shift``.

    The mean must fall between ∓(margin − t·s/√n), where s is random: the normal probability of that
    interval is integrated over the distribution of s (Owen's Q, as a one-dimensional integral).
    """
    from scipy import integrate, stats

    if deviation == 0.0:
        return float(abs(shift) < margin)
    freedom = pairs - 1
    error = deviation / math.sqrt(pairs)
    quantile = float(stats.t.ppf(1 - alpha, freedom))
    widest = margin / (quantile * error)  # of s/σ: beyond it the interval is empty
    s_over_sigma = stats.chi(freedom, scale=1 / math.sqrt(freedom))
    first, last = (float(s_over_sigma.ppf(p)) for p in (1e-12, 1 - 1e-12))

    def holds(ratio: Any) -> Any:
        reach = margin - quantile * ratio * error
        inside = stats.norm.cdf((reach - shift) / error) - stats.norm.cdf((-reach - shift) / error)
        return inside * s_over_sigma.pdf(ratio)

    if widest <= first:
        return 0.0
    return float(integrate.fixed_quad(holds, first, min(widest, last), n=_NODES)[0])


def power_to_differ(
    pairs: int, shift: float, deviation: float, margin: float, alpha: float
) -> float:
    """Return how probably ``|mean| <= margin`` is rejected, two-sided, for a mean ``shift``."""
    from scipy import stats

    if deviation == 0.0:
        return float(abs(shift) > margin)
    freedom, error = pairs - 1, deviation / math.sqrt(pairs)
    quantile = float(stats.t.ppf(1 - alpha / 2, freedom))
    return float(stats.nct.sf(quantile, freedom, (abs(shift) - margin) / error))


def pairs_needed(
    shift: float, deviation: float, margin: float, alpha: float, wanted: float
) -> int | None:
    """Return the fewest pairs that decide with probability ``wanted``, None if too many.

    To equivalent for a shift inside the margin, to different outside.
    """
    decide = power if abs(shift) < margin else power_to_differ

    def enough(pairs: int) -> bool:
        return decide(pairs, shift, deviation, margin, alpha) >= wanted

    if not enough(MOST_PAIRS):
        return None
    low, high = FEWEST_PAIRS - 1, FEWEST_PAIRS
    while not enough(high):
        low, high = high, min(2 * high, MOST_PAIRS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def smallest_seen(
    pairs: int, deviation: float, margin: float, alpha: float, wanted: float
) -> float:
    """Return the smallest shift called different with probability ``wanted``."""
    from scipy import optimize

    if deviation == 0.0:
        return margin
    widest = margin + 50 * deviation

    def lacks(shift: float) -> float:
        return power_to_differ(pairs, shift, deviation, margin, alpha) - wanted

    return float(optimize.brentq(lacks, margin, widest))
