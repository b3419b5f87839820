"""What a later gate compares with: every result of the sweep, and a random sample beside it.

Where the sweep is every input of one argument it is the population, and no sample says more.
"""

from __future__ import annotations

import numpy as np
import torch

from gelu_verify.checks.case import Case, Outcome
from gelu_verify.formats import Format, tensors
from gelu_verify.records import Comparable
from gelu_verify.statistics import sampling
from gelu_verify.statistics.outputs import Outputs


def run(case: Case) -> Outcome:
    """Keep the results of the sweep, and draw a sample."""
    subject, inputs = case.subject, case.sweep.inputs
    exact = subject.operator.exact(inputs, subject.formula, subject.fmt)
    due = exact.rounded(subject.fmt)
    outputs = Outputs.of(*(_patterns(part, subject.fmt) for part in (case.elements.actual, due)))
    population = case.sweep.exhaustive and len(inputs) == 1
    sample = None if population else sampling.measure_sample(subject, case.job.seed)
    return Outcome(fields={"comparable": Comparable(outputs=outputs, sample=sample)})


def _patterns(values: torch.Tensor, fmt: Format) -> np.ndarray:
    """Return bit patterns, int64 (N,); all NaNs are one: nobody promises their sign or payload."""
    bits = tensors.to_bits(values, fmt).to(torch.int64)
    bits[torch.isnan(values.double())] = fmt.nan_bits
    return bits.numpy()
