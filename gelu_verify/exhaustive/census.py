"""What an exhaustive pass found: a summary and all else that every single input can say.

Merging is exact and free of order, like that of the summary: any split of the patterns into shards
gives the identical census.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gelu_verify.contracts import Contract
from gelu_verify.judge import Tally
from gelu_verify.measure.envelope import Spread
from gelu_verify.measure.summary import Sample, Summary, worse


@dataclass
class Census:
    """Figures over a set of patterns of fp32, or of pairs of 16-bit patterns.

    Of pairs there are the summary, the counts of inputs, the tallies and ``broken``.

    nan_inputs, infinite_inputs: patterns that are NaN (all must give NaN) and infinities; pairs
        with a NaN, and pairs with an infinity and no NaN.
    binades: sign and exponent fields of x to the largest error in that binade.
    spreads: the same to its signed errors, where a result is finite.
    tallies: contract name to its verdicts.
    broken: names of contracts without a tally that some pair breaks: whether a contract would hold
        is all that is asked of those that are not the kernel's own.
    reversals: results that step back from their neighbour's, where the function is monotone;
        ``worst_reversal`` carries the size of the step in ULP as its error.
    zero_reach: largest |x| pattern of negative x whose result is not 0 (-1: none).
    identity_reach: largest pattern of positive x whose result is not x, or not dy (-1: none).
    """

    summary: Summary = field(default_factory=Summary)
    nan_inputs: int = 0
    infinite_inputs: int = 0
    binades: dict[int, Sample] = field(default_factory=dict)
    spreads: dict[int, Spread] = field(default_factory=dict)
    tallies: dict[str, Tally] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    reversals: int = 0
    worst_reversal: Sample | None = None
    reversals_broken: int = 0
    zero_reach: int = -1
    identity_reach: int = -1

    @property
    def patterns(self) -> int:
        """How many inputs were measured, NaN and infinite ones included."""
        return self.summary.inputs

    def tally(self, contract: Contract) -> Tally:
        """Return the verdicts of a contract, begun if need be."""
        return self.tallies.setdefault(contract.name, Tally(contract))

    def spread(self, binade: int) -> Spread:
        """Return the signed errors of a binade, begun if need be."""
        return self.spreads.setdefault(binade, Spread())

    def merge(self, other: Census) -> None:
        """Add the census of another set of patterns."""
        self.summary.merge(other.summary)
        self.nan_inputs += other.nan_inputs
        self.infinite_inputs += other.infinite_inputs
        for binade, sample in other.binades.items():
            found = worse(self.binades.get(binade), sample)
            assert found is not None
            self.binades[binade] = found
        for binade, spread in other.spreads.items():
            self.spread(binade).merge(spread)
        for tally in other.tallies.values():
            self.tally(tally.contract).merge(tally)
        self.broken |= other.broken
        self.reversals += other.reversals
        self.reversals_broken += other.reversals_broken
        self.worst_reversal = worse(self.worst_reversal, other.worst_reversal)
        self.zero_reach = max(self.zero_reach, other.zero_reach)
        self.identity_reach = max(self.identity_reach, other.identity_reach)
