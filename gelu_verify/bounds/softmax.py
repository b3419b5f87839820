"""Softmax over the last dimension: errors of the scores become relative errors of probabilities.

With scores off by at most ε_j, ``p_j = e^(s_j)/Σ e^(s_k)`` becomes at most

    p_j·e^(ε_j)/Σ p_k·e^(-ε_k)   and at least   p_j·e^(-ε_j)/Σ p_k·e^(ε_k),

whatever number the kernel shifts the scores by (Blanchard, Higham and Higham, "Accurately computing
the log-sum-exp and softmax functions", IMA J. Numer. Anal. 41, 2021, for the shift by the maximum).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gelu_verify.bounds import bounded
from gelu_verify.bounds.arithmetic import Arithmetic
from gelu_verify.bounds.bounded import ACCUMULATION, ARITHMETIC, Bounded

_UNIT = 2.0**-53
#: Roundings of a score before exp: times log2(e) or a scale, its constant, minus the shift.
_SHIFTED = 3
#: Roundings of exp (2 ULP: CUDA's expf, PTX's ex2), and of the quotient.
_EXP, _QUOTIENT = 4, 2
#: Scores that may be off by more say nothing about probabilities.
_USELESS = 300.0
#: What float64 may lose of a probability that underflows.
_OWN_LEAST = 2.0**-1020


def softmax(a: Bounded, arithmetic: Arithmetic) -> Bounded:
    """Return the probabilities (..., L) of scores (..., L).

    A kernel may rescale its sum while it finds the maximum (at most once in 16 scores), recompute
    probabilities from the logarithm of the sum, and flush those that are subnormal to zero.
    """
    length = a.value.shape[-1]
    if length == 0:
        return a
    value = torch.softmax(a.value, -1)
    shifted = _SHIFTED * (a.reach + a.reach.amax(-1, keepdim=True)) + math.log(length)
    scores = a.widened(ARITHMETIC, arithmetic.unit * (shifted + 1.01 * _EXP))
    sums = arithmetic.growth_of(length + rescalings(length), value.numel() // length)
    moved = _moved(value, scores.total + a.own)
    result = Bounded(value, _own(a, value), _shared(scores, value, moved))
    relative = (sums + _QUOTIENT * arithmetic.unit) * (value + moved)
    flushed = torch.full_like(value, arithmetic.own.smallest_normal)
    return result.widened(ACCUMULATION, relative).widened(ARITHMETIC, flushed)


def rescalings(length: int) -> int:
    """Return how many more roundings a term has where sums are rescaled block by block."""
    return (_EXP + 1) * math.ceil(length / 16)


def weighted(probabilities: Bounded, v: Bounded, arithmetic: Arithmetic) -> Bounded:
    """Return ``probabilities @ v``, rescaled block by block and divided by their sum at the end."""
    more = rescalings(v.value.shape[-2]) + _QUOTIENT
    return bounded.matmul(probabilities, v, arithmetic, more=more)


def _own(a: Bounded, value: Tensor) -> Tensor:
    size = a.value.abs()
    shifted = _UNIT * (size + size.amax(-1, keepdim=True) + _EXP)
    length = value.shape[-1]
    return _moved(value, a.own + shifted) + (length + 2) * _UNIT * value + _OWN_LEAST


def _moved(p: Tensor, by: Tensor) -> Tensor:
    """Return how far probabilities may move if their scores move by at most ``by``; at most 1."""
    near = by.clamp(max=_USELESS)
    least = torch.log1p((p * torch.expm1(-near)).sum(-1, keepdim=True))
    most = torch.log1p((p * torch.expm1(near)).sum(-1, keepdim=True))
    moved = p * torch.maximum(torch.expm1(near - least), -torch.expm1(-near - most))
    largest = by.amax(-1, keepdim=True)
    moved = torch.where(largest > _USELESS, torch.ones_like(moved), moved.clamp(max=1.0))
    return torch.where(torch.isfinite(largest), moved, torch.inf)


def _shared(scores: Bounded, p: Tensor, moved: Tensor) -> dict[str, Tensor]:
    """Return the movement by source, as each moves the score itself and the sum."""
    weights = {name: part + (p * part).sum(-1, keepdim=True) for name, part in scores.slack.items()}
    whole = torch.stack(list(weights.values())).sum(0)
    return {name: torch.where(whole > 0, moved * w / whole, moved) for name, w in weights.items()}
