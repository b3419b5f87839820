"""The measuring pass over consecutive patterns, in torch, on any device.

What it costs depends on what is unusual: a flat span whose results are the numbers expected there
is counted after one comparison of integers; the figures of any other block take about twenty passes
over arrays that stay in the cache; classes and verdicts are worked out only for the elements that
can have one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gelu_verify.allowances import permitted
from gelu_verify.contracts import BUILT_IN, Contract, Subnormals, ZeroSign, beside_built_in
from gelu_verify.elements import Elements
from gelu_verify.exhaustive import exact as block_exact
from gelu_verify.exhaustive.block import Block, Results
from gelu_verify.exhaustive.census import Census
from gelu_verify.exhaustive.spans import EPSILON, Span, Zone, turning_pattern, within
from gelu_verify.judge import Tally, Verdicts, judge
from gelu_verify.measure.envelope import Spread
from gelu_verify.measure.error import Class
from gelu_verify.measure.summary import LARGEST_BATCH, Batch, ClassTally, worse
from gelu_verify.operators import Operator

#: Elements measured at once on a CPU: twenty float64 arrays of it stay in a core's caches.
BLOCK = 1 << 14
_MAGNITUDE = 0x7FFF_FFFF
#: Wider than the bound of the reference, in ULP of fp32: verdicts this close are judged one by one.
OPEN = 5e-8
#: Elements measured at once on a GPU, the general way: the launches cost more than the work.
GPU_BLOCK = 1 << 22


@dataclass(frozen=True)
class Pass:
    """One function under one contract, and the census that its results are added to."""

    operator: Operator
    formula: str
    contract: Contract
    census: Census

    def add(self, first: int, results: Results) -> None:
        """Add the results for consecutive patterns, the first of which is ``first``."""
        total = results.bits.numel()
        size = BLOCK if results.bits.device.type == "cpu" else GPU_BLOCK
        for span in within(self.formula, self.operator.derivative, first, first + total):
            part = results.part(span.start - first, span.stop - first)
            if self._is_flat(span, part):
                continue
            for low in range(0, part.bits.numel(), size):
                block = span.clipped(span.start + low, span.start + low + size)
                assert block is not None
                self._block(block, part.part(low, low + block.stop - block.start))

    def _is_flat(self, span: Span, part: Results) -> bool:
        """Count a flat span if it holds just the numbers expected there, and say whether it did."""
        expected = block_exact.flat_patterns(span, part.bits, self.operator.derivative)
        if expected is None:
            return False
        got = part.actual.view(torch.int32)
        right = torch.equal(got, expected.expand_as(got))
        unsigned = not right and span.zone is Zone.FLAT_ZERO and not bool(got.any())
        if not (right or unsigned) or self._steps_in(span, part):
            return False
        self._count_flat(span)
        if unsigned:
            self._count_positive_zeros(span, part)
        return True

    def _steps_in(self, span: Span, part: Results) -> bool:
        """Tell whether the first result of a flat span is out of order with the one before it."""
        if self.operator.derivative or part.before is None:
            return False
        falling = span.negative and span.zone is Zone.FLAT_HALF
        step = float(part.actual[0]) - part.before
        return math.isfinite(step) and (step > 0.0 if falling else step < 0.0)

    def _count_flat(self, span: Span) -> None:
        """Count results whose errors are all below half the unit of the sums."""
        count = span.stop - span.start
        self.census.summary.inputs += count
        self.census.summary.finite_inputs += count
        assert span.region is not None
        region = self.census.summary.regions[span.region]
        region.count += count
        region.histogram[0] += count
        self.census.spread(span.binade).merge(Spread(count))
        last = (span.stop - 1) & _MAGNITUDE
        if span.negative and span.zone is not Zone.FLAT_ZERO:
            self.census.zero_reach = max(self.census.zero_reach, last)
        if not span.negative and span.zone is not Zone.FLAT_IDENTITY:
            self.census.identity_reach = max(self.census.identity_reach, last)

    def _count_positive_zeros(self, span: Span, part: Results) -> None:
        """Count a flat span of +0 where -0 is due: a billion elements, so not one by one."""
        count = span.stop - span.start
        sample = Block.sample_of(self.operator, part, 0, 0.0)
        seen = self.census.summary.classes.setdefault(Class.WRONG_ZERO_SIGN, ClassTally())
        seen.merge(ClassTally(count, sample, sample))
        for contract in self.contracts():
            if contract.zero_sign is ZeroSign.STRICT:
                self.census.tally(contract).merge(Tally(contract, count, sample, sample))

    def _block(self, span: Span, part: Results) -> None:
        block = Block.of(self.operator, self.formula, span, part)
        summary = self.census.summary
        summary.inputs += len(block)
        if span.zone in (Zone.NAN, Zone.INFINITE):
            self.census.nan_inputs += len(block) * (span.zone is Zone.NAN)
            self.census.infinite_inputs += len(block) * (span.zone is Zone.INFINITE)
            self._classes(block)
            if span.zone is Zone.NAN:  # no contract asks for anything at an infinity
                self._judge(block, block.odd, self.contracts())
            return
        summary.finite_inputs += len(block)
        self._figures(block)
        self._reach(block)
        self._classes(block)
        self._verdicts(block)
        if self.operator.derivative == 0:
            self._reversals(block)

    def _figures(self, block: Block) -> None:
        usable = block.usable()
        if usable.numel() == 0 or block.span.region is None:
            return
        region = self.census.summary.regions[block.span.region]
        known = self.census.binades.get(block.span.binade)
        low, high = (float(extreme) for extreme in torch.aminmax(usable))
        count, before = usable.numel(), region.signed_sum
        for part in usable.split(LARGEST_BATCH):
            region.add_errors(part.clone() if usable is block.error else part)
        spread = Spread.of(count, region.signed_sum - before, low, high)
        self.census.spread(block.span.binade).merge(spread)
        if block.largest < EPSILON:
            return
        below_both = region.worst is not None and block.largest < region.max_error_ulp
        if below_both and known is not None and block.largest < abs(known.error_ulp):
            return
        sample = block.worst()
        region.worst = worse(region.worst, sample)
        found = worse(known, sample)
        assert found is not None
        self.census.binades[block.span.binade] = found

    def _reach(self, block: Block) -> None:
        index = block.last_unsaturated()
        if index is None:
            return
        last = int(block.bits[index]) & _MAGNITUDE
        if block.span.negative:
            self.census.zero_reach = max(self.census.zero_reach, last)
        else:
            self.census.identity_reach = max(self.census.identity_reach, last)

    def _classes(self, block: Block) -> None:
        if block.odd.numel():
            self.census.summary.add_classes(block.batch(block.odd, block.elements(block.odd)))

    def contracts(self) -> tuple[Contract, ...]:
        """Return the contracts that are judged: the built-in ones, and this one."""
        return beside_built_in(self.contract)

    def _verdicts(self, block: Block) -> None:
        """Judge what may break a contract: by counting where only the limit matters, else fully."""
        by_limit: dict[float, list[Contract]] = {}
        for contract in self.contracts():
            self.census.tally(contract)
            by_limit.setdefault(contract.max_error_ulp, []).append(contract)
        for limit, contracts in by_limit.items():
            if block.largest <= limit - OPEN and block.odd.numel() == 0:
                continue
            near = block.beyond(limit - OPEN)
            near[block.odd] = True
            plain = [c for c in contracts if self.is_plain(c)]
            self._judge(block, near.nonzero().flatten(), [c for c in contracts if c not in plain])
            if plain:
                certain = block.certainly_beyond(limit, OPEN)
                self._count_broken(block, certain, plain)
                if block.rounding_is_known(limit):
                    near = torch.zeros_like(near)
                    near[block.odd] = True
                self._judge(block, (near & ~certain).nonzero().flatten(), plain)

    @staticmethod
    def is_plain(contract: Contract) -> bool:
        """Tell whether an error beyond the limit breaks a contract whatever else is true."""
        return not contract.allowances and contract.subnormals is Subnormals.IEEE

    def _count_broken(self, block: Block, broken: torch.Tensor, contracts: list[Contract]) -> None:
        members = broken.nonzero().flatten()
        if members.numel() == 0:
            return
        first, worst = block.sample(int(members[0])), block.worst(members)
        for contract in contracts:
            self.census.tally(contract).merge(Tally(contract, members.numel(), first, worst))

    def _judge(self, block: Block, members: torch.Tensor, contracts: Sequence[Contract]) -> None:
        """Judge some elements fully."""
        if members.numel() == 0 or not contracts:
            return
        elements = block.elements(members)
        self.judge_all(elements, block.batch(members, elements), contracts)

    def judge_all(
        self, elements: Elements, batch: Batch, contracts: Sequence[Contract] | None = None
    ) -> None:
        """Judge elements by some contracts, all by default. What holds one built-in contract holds
        every looser one.
        """
        left = torch.ones_like(batch.actual, dtype=torch.bool)
        for contract in self.contracts() if contracts is None else contracts:
            mine = contract == self.contract or contract not in BUILT_IN
            if mine:
                # Which elements need which allowance is recorded: all of them are judged.
                verdicts = judge(contract, elements)
                self.census.tally(contract).add(verdicts, batch)
                left = left & verdicts.broken if contract in BUILT_IN else left
            elif bool(left.any()):
                part = left.nonzero().flatten()
                broken = judge(contract, elements.select(part)).broken
                left[part[~broken]] = False
                self.census.tally(contract).add(Verdicts(left.clone(), {}), batch)

    def _reversals(self, block: Block) -> None:
        """Count results out of order with the one before, in the direction GELU has there."""
        back = self._out_of_order(block)
        if back.numel() == 0:
            return
        self.census.reversals += back.numel()
        sizes = block.step(back).abs() * block.per_ulp[back]
        index = back[int((sizes == sizes.max()).nonzero()[0])]
        sample = block.sample(int(index), float(sizes.max()))
        self.census.worst_reversal = worse(self.census.worst_reversal, sample)
        self._judge_reversals(block, back)

    def _judge_reversals(self, block: Block, back: torch.Tensor) -> None:
        """Count the results that step back by more than the contract permits."""
        step = block.step(back).abs()
        # Two neighbours within the limit of a monotone function are within twice of each other.
        limit = self.contract.max_error_ulp if self.contract.max_error_ulp > 0.5 else 0.0
        is_open = step * block.per_ulp[back] > 2 * limit
        if bool(is_open.any()):
            slack = 2 * permitted(self.contract, block.elements(back[is_open]))
            self.census.reversals_broken += int((step[is_open] > slack).sum())

    def _out_of_order(self, block: Block) -> torch.Tensor:
        turning = turning_pattern(self.formula)
        falling = block.span.negative and block.span.stop - 1 <= turning
        return block.out_of_order(falling, across_minimum=block.span.start == turning + 1)
