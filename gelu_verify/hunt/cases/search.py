"""The search over cases: a start over all sizes, local steps from the worst, then Hypothesis.

The seed fixes every choice; how many of them are made is a matter of time.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from itertools import count, cycle
from random import Random

from gelu_verify.hunt.cases.evaluation import CaseEvaluator
from gelu_verify.hunt.cases.space import Space
from gelu_verify.hunt.climbing import UNSCORED, climb
from gelu_verify.inputs.problems import Problem

#: Called after every case: a moment to tell how far the search is.
OnCase = Callable[[], None]

_POOL = 16
#: Local steps from one case before another is taken.
_STEPS = 12
_EXAMPLES = 60
#: Shares of the time after which the start and the local steps end.
_START_UNTIL, _STEPS_UNTIL = 0.6, 0.8


class CaseSearch:
    """One hunt over cases. ``run`` does it; what was found is in the evaluator."""

    def __init__(
        self, evaluator: CaseEvaluator, seed: int, seconds: float, on_case: OnCase = lambda: None
    ) -> None:
        self.evaluator = evaluator
        self.seed = seed
        self.stages: dict[str, int] = {}
        self.space = Space(evaluator.case.operator)
        self._pool: list[tuple[float, str, Problem]] = []
        self._random = Random(seed)
        self._on_case = on_case
        self._started, self._seconds = time.monotonic(), seconds

    def run(self) -> None:
        """Go through the stages until the time is over."""
        stages = (("start", self._start), ("steps", self._steps), ("targeted", self._targeted))
        for name, stage in stages:
            before = self.evaluator.judged
            try:
                stage()
            finally:
                self.stages[name] = self.evaluator.judged - before

    def _over(self, share: float) -> bool:
        return time.monotonic() - self._started > share * self._seconds

    def _try(self, problem: Problem) -> float:
        score = self.evaluator.score(problem)
        entry = (score, str(problem), problem)
        if score > UNSCORED and entry not in self._pool:
            self._pool = heapq.nlargest(_POOL, [*self._pool, entry], key=lambda one: one[:2])
        self._on_case()
        return score

    def _start(self) -> None:
        for name in cycle(self.space.needed):
            self._try(self.space.drawn(self._random, name))
            if self._over(_START_UNTIL):
                return

    def _steps(self) -> None:
        """Climb from a case among the worst, one change at a time."""
        while self._pool and not self._over(_STEPS_UNTIL):
            best, _, problem = self._random.choice(self._pool)
            for _ in range(_STEPS):
                neighbour = self.space.changed(problem, self._random)
                score = self._try(neighbour)
                if score > best:
                    best, problem = score, neighbour
                if self._over(_STEPS_UNTIL):
                    return

    def _targeted(self) -> None:
        for turn in count():
            for number, name in enumerate(self.space.needed):
                if self._over(1.0):
                    return
                self._climb(name, self.seed + 1000 * turn + number)

    def _climb(self, swept: str, seed: int) -> None:
        from gelu_verify.hunt.cases.strategies import problems

        label = "log2 of error over bound"
        cases = problems(self.space, swept)
        climb(cases, self._try, label, lambda: self._over(1.0), _EXAMPLES, seed)
