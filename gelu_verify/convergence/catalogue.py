"""The tasks that ship, by name, and the kernels that each has room for. Loads no framework."""

from __future__ import annotations

#: Operators of kernels that can stand at a site, by the operator that the site takes.
ROOM: dict[str, tuple[str, ...]] = {
    "linear_gelu": ("gelu", "gelu_backward", "bias_gelu", "linear_gelu"),
    "geglu": ("gelu", "gelu_backward", "geglu"),
    "layernorm_gelu": ("gelu", "gelu_backward", "layernorm_gelu"),
    "attention": ("attention",),
    "conv_relu_pool": ("conv_relu_pool",),
}
#: The operator that the sites of each shipped task take; its record in ``tasks/`` says the rest.
TASKS: dict[str, str] = {
    "digits-mlp": "linear_gelu",
    "digits-transformer": "linear_gelu",
    "digits-gated": "geglu",
    "digits-norm": "layernorm_gelu",
    "digits-attention": "attention",
    "digits-conv": "conv_relu_pool",
    "python-gpt": "linear_gelu",
    "python-gpt-gated": "geglu",
    "python-gpt-norm": "layernorm_gelu",
    "python-next": "attention",
}


def default(operator: str) -> str:
    """Return the first shipped task with room for kernels of an operator; every one has some."""
    return next(name for name, taken in TASKS.items() if operator in ROOM[taken])
