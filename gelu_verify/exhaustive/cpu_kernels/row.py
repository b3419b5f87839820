"""Firsts, largest sizes and sets of a row: ties go to the lowest pattern, whatever the order."""

from __future__ import annotations

from gelu_verify.exhaustive.cpu_kernels.columns import SET_COUNT, SET_FIRST, SET_SIZE, SET_WORST_AT
from gelu_verify.exhaustive.jit import compiled


@compiled
def keep_first(integers, results, column, pattern, got):
    """Put a pattern and its result in a column if it is lower than the one there."""
    if pattern < integers[column]:
        integers[column] = pattern
        results[column] = got


@compiled
def keep_worst(sizes, integers, results, size_column, column, size, pattern, got):
    """Put a size, its pattern and result in their columns if larger, or as large and lower."""
    if size > sizes[size_column] or (size == sizes[size_column] and pattern < integers[column]):
        sizes[size_column] = size
        integers[column] = pattern
        results[column] = got


@compiled
def add_to_set(sizes, integers, results, number, size, pattern, got):
    """Add an element to a set of the row: its count, its first and its worst."""
    integers[SET_COUNT + number] += 1
    keep_first(integers, results, SET_FIRST + number, pattern, got)
    keep_worst(
        sizes, integers, results, SET_SIZE + number, SET_WORST_AT + number, size, pattern, got
    )
