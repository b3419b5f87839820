"""Kernels that ship with gelu_verify: sound references and known defects."""
