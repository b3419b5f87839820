"""Worst cases of a fused operator by search: shapes, values, layouts and seeds."""
