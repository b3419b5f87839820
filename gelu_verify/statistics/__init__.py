"""Is it different: mergeable distributions of errors, intervals, comparisons, false alarms, power.

A population (every input of a format) is compared exactly: ``population``. A sample is compared by
tests and effects: ``comparison``. The records load neither numpy, scipy nor torch.
"""

# Results hold records of this package, which are made of those: one order of loading serves both.
import gelu_verify.records  # noqa: F401
