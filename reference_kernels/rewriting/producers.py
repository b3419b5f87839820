"""What feeds a GELU: a linear layer, a bias, a layer norm; as arguments of a fused operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from .expressions import kind

#: The epsilon of the fused operator.
EPSILON = 1e-5
_LINEAR = ("input", "weight", "bias")
_DROPOUTS = (functional.dropout, torch.dropout, functional.alpha_dropout)


@dataclass(frozen=True)
class Operand:
    """An argument of the fused call: a node, a parameter by name, either transposed or not."""

    source: fx.Node | str
    value: Tensor
    transposed: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape as the fused operator sees it."""
        shape = tuple(self.value.shape)
        return (*shape[:-2], shape[-1], shape[-2]) if self.transposed else shape


@dataclass(frozen=True)
class Producer:
    """A fused operator, its arguments by name, and the nodes that it takes the place of."""

    operator: str
    arguments: dict[str, Operand]
    inside: frozenset[fx.Node]


class NoMatch(Exception):
    """Why a GELU has nothing before it that it can be fused with, in a clause."""


def of(node: fx.Node, modules: dict[str, nn.Module]) -> Producer:
    """Return what can be fused with a GELU of ``node``. Raises :class:`NoMatch`."""
    if node.op == "call_module":
        return _of_module(node, modules[str(node.target)])
    name = kind(node)
    if name == "linear":
        given = _given(node, _LINEAR)
        if given.get("bias") is None:
            raise NoMatch("its linear has no bias")
        return _linear(given["input"], given["weight"], given["bias"], {node})
    if name == "addmm":
        if node.kwargs or len(node.args) != 3:
            raise NoMatch("addmm has factors (alpha, beta)")
        bias, x, weight = node.args
        return _linear(x, weight, bias, {node}, transposed=True)
    if name == "add":
        return _of_sum(node)
    if name == "layer_norm":
        return _of_layer_norm(node)
    between = "dropout comes between" if node.target in _DROPOUTS else None
    raise NoMatch(between or f"{node.name} is no linear, bias or layer norm")


def _of_module(node: fx.Node, module: nn.Module) -> Producer:
    """Read nn.Linear and nn.LayerNorm themselves: a subclass may do more."""
    if isinstance(module, nn.modules.dropout._DropoutNd):
        raise NoMatch("dropout comes between")
    if type(module) not in (nn.Linear, nn.LayerNorm):
        raise NoMatch(f"{node.target} is no linear, bias or layer norm")
    if module.bias is None or module.weight is None:
        raise NoMatch(f"{node.target} has no {'bias' if module.bias is None else 'weight'}")
    if isinstance(module, nn.LayerNorm):
        _require_norm(tuple(module.normalized_shape), module.eps)
    parameters = {
        name: Operand(f"{node.target}.{name}", getattr(module, name)) for name in ("weight", "bias")
    }
    operator = "linear_gelu" if isinstance(module, nn.Linear) else "layernorm_gelu"
    return Producer(operator, {"x": operand(_input(node)), **parameters}, frozenset({node}))


def _given(node: fx.Node, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the arguments of a call by name."""
    return {**dict(zip(names, node.args, strict=False)), **node.kwargs}


def _input(node: fx.Node) -> object:
    return node.args[0] if node.args else node.kwargs.get("input")


def _linear(
    x: object, weight: object, bias: object, inside: set[fx.Node], transposed: bool = False
) -> Producer:
    """Return f(x·weightᵀ + bias); transposed: where the graph multiplies by weight itself."""
    right = _transposed(weight) if transposed else operand(weight)
    arguments = {"x": operand(x), "weight": right, "bias": operand(bias)}
    return Producer("linear_gelu", arguments, frozenset(inside))


def _transposed(weight: object) -> Operand:
    """Return the transpose of a factor: what it is the transpose of, where the graph says so."""
    swaps = kind(weight) == "t"
    if isinstance(weight, fx.Node) and kind(weight) == "transpose":
        axes = (*weight.args[1:], *weight.kwargs.values())
        swaps = {axis % 2 for axis in axes if isinstance(axis, int)} == {0, 1}
    if swaps and isinstance(weight, fx.Node) and operand(weight).value.dim() == 2:
        return operand(weight.args[0])
    found = operand(weight)
    if found.value.dim() != 2:
        raise NoMatch("the weight is not two-dimensional")
    return Operand(found.source, found.value, transposed=True)


def _of_sum(node: fx.Node) -> Producer:
    """Read x + bias in either order, and a product without bias before it."""
    shape = tuple(operand(node).value.shape)
    pair = [part for part in node.args if isinstance(part, fx.Node)]
    if len(pair) != 2:
        raise NoMatch("a number is added, no bias")
    # Where both are one-dimensional, the parameter is the bias.
    pair.sort(key=lambda part: part.op == "get_attr")
    for x, bias in (pair, pair[::-1]):
        value = operand(bias).value
        if value.dim() != 1 or tuple(operand(x).value.shape) != shape:
            continue
        if len(x.users) == 1 and (product := _product(x, bias, node)) is not None:
            return product
        return Producer("bias_gelu", {"x": operand(x), "bias": operand(bias)}, frozenset({node}))
    shapes = " and ".join(str(list(operand(part).value.shape)) for part in pair)
    raise NoMatch(f"the bias is not one-dimensional: {shapes} are added")


def _product(x: fx.Node, bias: fx.Node, total: fx.Node) -> Producer | None:
    """Return the linear layer of a product that a bias is added to; None if x is none."""
    if kind(x) == "linear" and (given := _given(x, _LINEAR)).get("bias") is None:
        return _linear(given["input"], given["weight"], bias, {x, total})
    if kind(x) == "matmul" and operand(x.args[1]).value.dim() == 2:
        return _linear(x.args[0], x.args[1], bias, {x, total}, transposed=True)
    return None


def _of_layer_norm(node: fx.Node) -> Producer:
    given: dict[str, Any] = {"weight": None, "bias": None, "eps": EPSILON}
    given |= _given(node, ("input", "normalized_shape", "weight", "bias", "eps"))
    if given["weight"] is None or given["bias"] is None:
        raise NoMatch("its layer norm has no weight or no bias")
    _require_norm(tuple(given["normalized_shape"]), given["eps"])
    arguments = {"x": operand(given["input"])}
    arguments |= {name: operand(given[name]) for name in ("weight", "bias")}
    return Producer("layernorm_gelu", arguments, frozenset({node}))


def _require_norm(shape: tuple[int, ...], epsilon: float) -> None:
    if len(shape) != 1:
        raise NoMatch(f"its layer norm is over {len(shape)} dimensions")
    if epsilon != EPSILON:
        raise NoMatch(f"its layer norm has eps {epsilon:g}, not {EPSILON:g}")


def operand(node: object) -> Operand:
    """Return a node as an argument; its value is the fake tensor that the shapes came from."""
    if not isinstance(node, fx.Node) or not isinstance(node.meta.get("val"), Tensor):
        raise NoMatch(f"{node} is no tensor")
    return Operand(node, node.meta["val"])
