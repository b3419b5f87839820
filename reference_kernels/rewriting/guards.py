"""What must hold before a site is replaced, apart from its form: users, dtypes, shapes, hooks."""

from __future__ import annotations

import operator

import torch
from torch import fx, nn

from .activations import Activation
from .producers import NoMatch, Operand, Producer

_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_IN_PLACE = (
    *(operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow),
    *(operator.imatmul, operator.setitem),
)

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def require(found: Activation, producer: Producer, modules: dict[str, nn.Module]) -> None:
    """Raise :class:`NoMatch` unless the fused operator computes what the site does."""
    _require_plain(found.inside | producer.inside, modules)
    _require_own(found.inside | producer.inside, found.output)
    _require_dtypes(found, producer.arguments)
    _require_shapes(found, producer)
    _require_order(found.inside | producer.inside, found.output, modules)


def _require_plain(inside: set[fx.Node], modules: dict[str, nn.Module]) -> None:
    """Refuse modules with hooks: a fused call would not run them."""
    for node in inside:
        module = modules[str(node.target)] if node.op == "call_module" else None
        if module is not None and any(getattr(module, name) for name in _HOOKS):
            raise NoMatch(f"{node.target} has hooks")


def _require_own(inside: set[fx.Node], output: fx.Node) -> None:
    """Refuse an intermediate that something else reads: it would be computed all the same."""
    for node in sorted(inside - {output}):
        others = [user.name for user in node.users if user not in inside]
        if others:
            raise NoMatch(f"{node.name} is used by {', '.join(others)}, too")


def _require_dtypes(found: Activation, arguments: dict[str, Operand]) -> None:
    dtypes = {name: part.value.dtype for name, part in arguments.items()}
    dtypes["result"] = found.output.meta["val"].dtype
    if len(set(dtypes.values())) > 1:
        named = ", ".join(f"{name} {_short(dtype)}" for name, dtype in dtypes.items())
        raise NoMatch(f"mixed dtypes: {named}")
    if dtypes["result"] not in _DTYPES:
        raise NoMatch(f"{_short(dtypes['result'])} is no dtype of the fused operators")


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _require_shapes(found: Activation, producer: Producer) -> None:
    shape = tuple(found.output.meta["val"].shape)
    x, bias = producer.arguments["x"].shape, producer.arguments["bias"].shape
    if len(bias) != 1:
        raise NoMatch(f"the bias is not one-dimensional: {list(bias)}")
    if not x or not shape or bias != shape[-1:]:
        raise NoMatch(f"the bias is broadcast: {list(bias)} to {list(shape)}")
    weight = producer.arguments.get("weight")
    wanted = (*bias, *x[-1:]) if producer.operator == "linear_gelu" else bias
    if weight is not None and weight.shape != wanted:
        raise NoMatch(f"the weight has shape {list(weight.shape)}, not {list(wanted)}")


def _require_order(inside: set[fx.Node], output: fx.Node, modules: dict[str, nn.Module]) -> None:
    """Refuse changes in place before the GELU: there the fused call reads its arguments."""
    started = False
    for node in output.graph.nodes:
        started = started or node in inside
        if node is output:
            return
        if started and node not in inside and _in_place(node, modules):
            raise NoMatch(f"{node.name} changes a tensor in place before the GELU")


def _in_place(node: fx.Node, modules: dict[str, nn.Module]) -> bool:
    if node.op == "call_module":
        return bool(getattr(modules[str(node.target)], "inplace", False))
    name = str(getattr(node.target, "__name__", node.target))
    ends = name.endswith("_") and not name.endswith("__")
    return (
        ends
        or node.target in _IN_PLACE
        or bool(node.kwargs.get("inplace"))
        or (node.kwargs.get("out") is not None)
    )
