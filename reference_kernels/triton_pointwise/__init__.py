"""Elementwise GELU in Triton: math on loaded values, thin kernels, host functions."""

from .launch import (
    gelu_erf,
    gelu_erf_backward,
    gelu_erf_guarded,
    gelu_sigmoid,
    gelu_sigmoid_backward,
    gelu_tanh,
    gelu_tanh_backward,
)

__all__ = [
    "gelu_erf",
    "gelu_erf_backward",
    "gelu_erf_guarded",
    "gelu_sigmoid",
    "gelu_sigmoid_backward",
    "gelu_tanh",
    "gelu_tanh_backward",
]
