"""The measuring engine in compiled code for CPUs: one pass over the results of a stretch.

The work is done a chunk at a time, whose arrays stay in the first-level cache. Columns of the rows
are those of ``exhaustive.figures``.
"""

from gelu_verify.exhaustive.cpu_kernels.columns import CHUNK
from gelu_verify.exhaustive.cpu_kernels.flat import flat
from gelu_verify.exhaustive.cpu_kernels.measure import measure

__all__ = ["CHUNK", "flat", "measure"]
