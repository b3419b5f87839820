"""Find the GELUs of a graph: modules, functions, and the three formulas written out."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import fx, nn
from torch.nn import functional

from .expressions import Polynomial, find, is_product, kind, polynomial, product

_HALF = 0.5


@dataclass
class Activation:
    """``output = f(argument)``. inside: the nodes that compute it, the output among them.

    constants: those that are written out, in the order of `constants.CONSTANTS`; () if torch's own.
    """

    output: fx.Node
    argument: fx.Node
    formula: str
    inside: set[fx.Node]
    constants: tuple[float, ...] = field(default=())


def of(node: fx.Node, modules: dict[str, nn.Module]) -> Activation | None:
    """Return the activation that a node is the output of, whatever its constants; None if none."""
    if node.op == "call_module":
        module = modules[str(node.target)]
        approximate = module.approximate if type(module) is nn.GELU else None
        return _named(node, approximate)
    if kind(node) == "gelu":
        return _named(node, node.kwargs.get("approximate", "none"))
    return _written_out(node) if is_product(node) else None


def is_hidden(node: fx.Node, modules: dict[str, nn.Module]) -> bool:
    """Tell whether a node is a module that was not traced and has a GELU within."""
    if node.op != "call_module" or type(modules[str(node.target)]) is nn.GELU:
        return False
    return any(
        isinstance(part, nn.GELU) or getattr(part, "activation", None) is functional.gelu
        for part in modules[str(node.target)].modules()
    )


def _named(node: fx.Node, approximate: object) -> Activation | None:
    formula = {"none": "erf", "tanh": "tanh"}.get(str(approximate))
    argument = node.args[0] if node.args else node.kwargs.get("input")
    if formula is None or not isinstance(argument, fx.Node):
        return None
    return Activation(node, argument, formula, {node})


def _written_out(node: fx.Node) -> Activation | None:
    """Read ``number·x·(a + b·g(p(x)))``, g one of erf, tanh, sigmoid, in any order of factors."""
    inside: set[fx.Node] = set()
    number, factors = product(node, inside)
    if len(factors) != 2:
        return None
    for factor, argument in (factors, factors[::-1]):
        inner = find(factor, ("erf", "tanh", "sigmoid"))
        if inner is None:
            continue
        within = {*inside, inner}
        outer = polynomial(factor, inner, within)
        source = inner.args[0] if inner.args else None
        exponent = polynomial(source, argument, within)
        constants = _constants(kind(inner), number, outer, exponent)
        if constants is not None:
            formula = kind(inner)
            return Activation(node, argument, formula, within - {argument}, constants)
    return None


def _constants(
    name: str, number: float, outer: Polynomial | None, exponent: Polynomial | None
) -> tuple[float, ...] | None:
    """Return the formula's constants; None where the shape is another."""
    if outer is None or exponent is None:
        return None
    outer, exponent = _without_zeros(outer), _without_zeros(exponent)
    wanted = {1: 1.0} if name == "sigmoid" else {0: _HALF, 1: _HALF}
    if {power: number * c for power, c in outer.items()} != wanted:
        return None
    if name == "tanh":
        return (exponent[1], exponent[3] / exponent[1]) if set(exponent) == {1, 3} else None
    return (exponent[1],) if set(exponent) == {1} else None


def _without_zeros(found: Polynomial) -> Polynomial:
    return {power: c for power, c in found.items() if c}
