"""Read arithmetic in a graph: what a node does, polynomials of another node, products."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.nn import functional

#: What functions and methods do, by one name each.
_FUNCTIONS: dict[Any, str] = {
    operator.add: "add",
    torch.add: "add",
    operator.sub: "sub",
    torch.sub: "sub",
    operator.mul: "mul",
    torch.mul: "mul",
    torch.multiply: "mul",
    operator.truediv: "div",
    torch.div: "div",
    torch.true_divide: "div",
    operator.neg: "neg",
    torch.neg: "neg",
    operator.pow: "pow",
    torch.pow: "pow",
    torch.square: "square",
    torch.erf: "erf",
    torch.special.erf: "erf",
    torch.tanh: "tanh",
    functional.tanh: "tanh",
    torch.sigmoid: "sigmoid",
    torch.special.expit: "sigmoid",
    functional.sigmoid: "sigmoid",
    operator.matmul: "matmul",
    torch.matmul: "matmul",
    torch.mm: "matmul",
    torch.addmm: "addmm",
    torch.t: "t",
    torch.transpose: "transpose",
    functional.linear: "linear",
    functional.layer_norm: "layer_norm",
    functional.gelu: "gelu",
}
_METHODS = {
    *("add", "sub", "mul", "div", "neg", "pow", "square", "erf", "tanh", "sigmoid"),
    *("matmul", "addmm", "t", "transpose"),
}
_SAME_METHODS = {"mm": "matmul", "multiply": "mul", "true_divide": "div"}
_ARITHMETIC = ("add", "sub", "mul", "div", "neg", "pow", "square")

#: Powers of a node to their coefficients.
Polynomial = dict[int, float]


def kind(node: object) -> str:
    """Return the name of what a node does, "" for anything that is not read here.

    ``x.T`` is "t"; arithmetic with keywords (``alpha``, ``rounding_mode``) is not read.
    """
    if not isinstance(node, fx.Node):
        return ""
    if node.op == "call_function":
        if node.target is getattr and node.args[1] in ("T", "mT"):
            return "t"
        found = _FUNCTIONS.get(node.target, "")
    elif node.op == "call_method":
        name = str(node.target)
        found = name if name in _METHODS else _SAME_METHODS.get(name, "")
    else:
        return ""
    return "" if node.kwargs and found in _ARITHMETIC else found


def polynomial(node: object, base: fx.Node, inside: set[fx.Node]) -> Polynomial | None:
    """Return a node as a polynomial of another; None if it is none. Its nodes join ``inside``."""
    if node is base:
        return {1: 1.0}
    if isinstance(node, (int, float)) and not isinstance(node, bool):
        return {0: float(node)}
    name = kind(node)
    if not isinstance(node, fx.Node) or name not in _ARITHMETIC:
        return None
    inside.add(node)
    if name == "pow":
        part, power = polynomial(node.args[0], base, inside), node.args[1]
        return None if part is None else _power(part, power)
    parts = [polynomial(argument, base, inside) for argument in node.args]
    known = [part for part in parts if part is not None]
    return _combined(name, known) if len(known) == len(parts) else None


def _combined(name: str, parts: list[Polynomial]) -> Polynomial | None:
    first, second = parts[0], parts[-1]
    if name == "square":
        return _product(first, first)
    if name == "neg":
        return _scaled(first, -1.0)
    if name == "add":
        return _sum(first, second)
    if name == "sub":
        return _sum(first, _scaled(second, -1.0))
    if name == "mul":
        return _product(first, second)
    divisor = second.get(0, 0.0) if set(second) <= {0} else 0.0
    return _mapped(first, lambda c: c / divisor) if divisor else None


def _power(part: Polynomial, power: Any) -> Polynomial | None:
    if not isinstance(power, (int, float)) or power != int(power) or not 0 <= power <= 3:
        return None
    found: Polynomial = {0: 1.0}
    for _ in range(int(power)):
        found = _product(found, part)
    return found


def _sum(a: Polynomial, b: Polynomial) -> Polynomial:
    return {power: a.get(power, 0.0) + b.get(power, 0.0) for power in {*a, *b}}


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    found: Polynomial = {}
    for p, c in a.items():
        for q, d in b.items():
            found[p + q] = found.get(p + q, 0.0) + c * d
    return found


def _scaled(a: Polynomial, factor: float) -> Polynomial:
    return _mapped(a, lambda c: c * factor)


def _mapped(a: Polynomial, change: Callable[[float], float]) -> Polynomial:
    return {power: change(c) for power, c in a.items()}


def product(node: fx.Node, inside: set[fx.Node]) -> tuple[float, list[fx.Node]]:
    """Return a product as its number and the nodes it multiplies.

    A product within is taken apart only where nothing else uses it. Its nodes join ``inside``.
    """
    number, factors = 1.0, list[fx.Node]()
    inside.add(node)
    name = kind(node)
    for place, argument in enumerate(node.args):
        divides = name == "div" and place == 1
        if isinstance(argument, (int, float)):
            value = float(argument)
            number *= (1 / value if value else math.nan) if divides else value
        elif isinstance(argument, fx.Node):
            if divides:
                return math.nan, []
            if is_product(argument) and len(argument.users) == 1:
                more, within = product(argument, inside)
                number, factors = number * more, factors + within
            else:
                factors.append(argument)
    return (-number if name == "neg" else number), factors


def is_product(node: fx.Node) -> bool:
    """Tell whether a node multiplies, divides by or negates."""
    return kind(node) in ("mul", "div", "neg")


def find(node: fx.Node, names: tuple[str, ...]) -> fx.Node | None:
    """Return the first node of one of these kinds below a node's sums and products."""
    if kind(node) in names:
        return node
    if kind(node) not in _ARITHMETIC:
        return None
    for part in node.all_input_nodes:
        if (found := find(part, names)) is not None:
            return found
    return None
