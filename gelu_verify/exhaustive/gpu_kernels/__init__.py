"""The measuring engine in Triton: one read of the kernel's output, inputs made from the counter.

A program takes a piece: consecutive patterns within one stretch, so that zone, region and binade
are those of the piece. It leaves the figures of the piece; ``reduce_kernel`` adds those of a
stretch to the row of its span. Columns are those of ``exhaustive.figures``.
"""

from gelu_verify.exhaustive.gpu_kernels.flat import flat_kernel
from gelu_verify.exhaustive.gpu_kernels.inputs import counter_kernel
from gelu_verify.exhaustive.gpu_kernels.measure import PIECE_COLUMNS, measure_kernel
from gelu_verify.exhaustive.gpu_kernels.reduce import reduce_kernel, reduce_sets_kernel
from gelu_verify.exhaustive.gpu_kernels.select import sample_kernel, select_kernel, set_kernel

__all__ = [
    "PIECE_COLUMNS",
    "counter_kernel",
    "flat_kernel",
    "measure_kernel",
    "reduce_kernel",
    "reduce_sets_kernel",
    "sample_kernel",
    "select_kernel",
    "set_kernel",
]
