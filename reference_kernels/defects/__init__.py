"""Kernels with one known fault each, which the harness must tell from sound ones."""
