"""Recipes that are known to hurt one operator."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from gelu_verify.inputs.problems.values import Draft, Recipe


def high_mean(draft: Draft) -> Mapping[str, Tensor]:
    """Give rows a mean far above their spread: E[x²] - E[x]² keeps nothing of a variance.

    The mean is as far above as the format can hold with a spread of some four of its steps, at most
    2^10.
    """
    mean = 2.0 ** min(draft.fmt.precision - 3, 10)
    return {"x": draft.parts["x"] + mean}


def constant_rows(draft: Draft) -> Mapping[str, Tensor]:
    """Make every second row constant: a variance of 0, which rounding may make negative."""
    x = draft.parts["x"].clone()
    x[..., ::2, :] = x[..., ::2, :1]
    return {"x": x}


def wide_scores(draft: Draft) -> Mapping[str, Tensor]:
    """Give scores of hundreds, both signs: beyond the range of exp in fp32 (±88)."""
    q, k = draft.parts["q"], draft.parts["k"]
    return {"q": q * 16.0, "k": k * 16.0}


def common_offset(draft: Draft) -> Mapping[str, Tensor]:
    """Give all scores of a row 192 more: a softmax that does not subtract the largest overflows."""
    q, k = draft.parts["q"].clone(), draft.parts["k"].clone()
    if q.shape[-1]:
        q[..., 0], k[..., 0] = 16.0, 12.0 * q.shape[-1] ** 0.5
    return {"q": q, "k": k}


def low_scores(draft: Draft) -> Mapping[str, Tensor]:
    """Give every third row scores near -2^16: below the finite numbers that stand in for -inf."""
    q, k = draft.parts["q"].clone(), draft.parts["k"].clone()
    if q.shape[-1]:
        q[..., 0], q[..., 1::3, 0] = 0.0, -(2.0**8)
        k[..., 0] = 2.0**8 * q.shape[-1] ** 0.5
    return {"q": q, "k": k}


def masked_keys(draft: Draft) -> Mapping[str, Tensor]:
    """Let every third key score -inf: its weight is 0, and all else is finite."""
    q, k = draft.parts["q"].clone(), draft.parts["k"].clone()
    if q.shape[-1]:
        q[..., 0] = 1.0
        k[..., 1::3, 0] = -torch.inf
    return {"q": q, "k": k}


def masked_rows(draft: Draft) -> Mapping[str, Tensor]:
    """Let every third row score -inf: nothing is left to normalise there."""
    q, k = draft.parts["q"].clone(), draft.parts["k"].clone()
    if q.shape[-1]:
        k[..., 0] = 1.0
        q[..., 1::3, 0] = -torch.inf
    return {"q": q, "k": k}


def few_keys(draft: Draft) -> Mapping[str, Tensor]:
    """Give weight to the keys at the ends and beside 2^15 and 2^16 alone: each of them shows.

    All others score 64 less. Among thousands of equal weights a lost key would hide in the bound.
    """
    q, k = draft.parts["q"].clone(), draft.parts["k"].clone()
    length = k.shape[-2]
    if q.shape[-1]:
        near = [at + by for at in (0, 2**15, 2**16, length) for by in range(-3, 3)]
        kept = sorted({place for place in near if 0 <= place < length})
        q[..., 0], k[..., 0] = 1.0, -64.0 * q.shape[-1] ** 0.5
        k[..., kept, 0] = 0.0
    return {"q": q, "k": k}


def ties(draft: Draft) -> Mapping[str, Tensor]:
    """Take few values, each in a patch of 4×4: windows of a pool whose largest comes twice."""
    x = draft.parts["x"]
    rows, columns = (torch.arange(size) // 4 for size in x.shape[-2:])
    patches = x.sign()[..., rows, :][..., columns]
    return {"x": patches}


def negative(draft: Draft) -> Mapping[str, Tensor]:
    """Put most windows below zero: a pool that starts from 0 hides in the others."""
    return {"bias": draft.parts["bias"].abs() * -1.0 - 1.0}


HARD_VALUES = {
    "high_mean": Recipe(high_mean, ("layernorm_gelu",)),
    "constant_rows": Recipe(constant_rows, ("layernorm_gelu",)),
    "wide_scores": Recipe(wide_scores, ("attention",)),
    "common_offset": Recipe(common_offset, ("attention",)),
    "low_scores": Recipe(low_scores, ("attention",)),
    "masked_keys": Recipe(masked_keys, ("attention",)),
    "masked_rows": Recipe(masked_rows, ("attention",)),
    "few_keys": Recipe(few_keys, ("attention",)),
    "ties": Recipe(ties, ("conv_relu_pool",)),
    "negative": Recipe(negative, ("conv_relu_pool",)),
}
