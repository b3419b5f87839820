"""Errors of many inputs, measured once, from which samples are drawn again and again.

Drawing with replacement from the pool is drawing independently from a law that is known: that of
the pool's errors. So the gate's decision can be simulated thousands of times under a law that did
not change, or that changed by as much as one likes, where measuring afresh would take hours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gelu_verify.kernels.subject import Subject
from gelu_verify.statistics.distribution import ErrorDistribution
from gelu_verify.statistics.sampling import errors_by_region


@dataclass(frozen=True)
class Pool:
    """Region to signed errors in ULP, float64 (N,), NaN for results without a distance."""

    errors: dict[str, np.ndarray]

    @classmethod
    def measured(cls, subject: Subject, per_region: int, seed: int = 0) -> Pool:
        """Return the errors at ``per_region`` randomly drawn inputs of every region."""
        return cls(errors_by_region(subject, per_region, seed))

    def drawn(self, count: int, random: np.random.Generator) -> dict[str, ErrorDistribution]:
        """Return the distributions of ``count`` errors of each region."""
        return {
            region: ErrorDistribution.from_errors(random.choice(errors, count))
            for region, errors in self.errors.items()
        }
