"""The pass: trace, find each GELU, match what feeds it, replace both by one call."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import fx, nn

from . import activations, constants, guards, producers
from .activations import Activation
from .expressions import kind
from .producers import NoMatch, Operand, Producer
from .report import Left, Replaced, Report

#: Where a rewritten module keeps its report, for those who verify it.
META = "rewriting"


def rewrite(
    model: nn.Module, inputs: tuple[Any, ...], operators: Any = None
) -> tuple[fx.GraphModule, Report]:
    """Return the model with fused operators where they compute the same, and what was done.

    inputs: example arguments; dtypes and ranks are theirs. operators: what has ``linear_gelu``,
    ``bias_gelu`` and ``layernorm_gelu`` with the formula as last argument, by default the Triton
    kernels; one that is missing is not used. The result shares the model's parameters, under their
    names; the model is left as it is. Raises ``ValueError`` for a model torch.fx cannot trace.
    """
    if operators is None:
        from reference_kernels import triton_fused as operators
    traced = _traced(model)
    _know_shapes(traced, inputs)
    modules = dict(traced.named_modules())
    replaced, left = [], []
    for node in list(traced.graph.nodes):
        if activations.is_hidden(node, modules):
            what = type(modules[str(node.target)]).__name__
            left.append(Left(_name(node), f"torch.fx does not look inside {what}"))
        found = activations.of(node, modules)
        if found is None:
            continue
        try:
            producer = _match(found, modules, operators)
        except NoMatch as reason:
            left.append(Left(_name(found.output), str(reason)))
            continue
        replaced.append(_replace(traced.graph, found, producer, operators))
    traced.graph.lint()
    traced.recompile()
    report = Report(tuple(replaced), tuple(left))
    traced.meta[META] = report
    return traced, report


def _traced(model: nn.Module) -> fx.GraphModule:
    if isinstance(model, fx.GraphModule):
        # The copy shares the parameters: only the graph is rewritten.
        return fx.GraphModule(model, copy.deepcopy(model.graph))
    try:
        return fx.symbolic_trace(model)
    except Exception as error:
        raise ValueError(
            f"model: got {type(model).__name__}, which torch.fx cannot trace ({error}), expected "
            "one whose Python does not depend on values. Rewrite a submodule of it."
        ) from error


def _know_shapes(traced: fx.GraphModule, inputs: tuple[Any, ...]) -> None:
    """Give every node its fake result: nothing is computed, no running statistic moves."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.passes.fake_tensor_prop import FakeTensorProp

    try:
        with torch.no_grad():
            FakeTensorProp(traced, FakeTensorMode(allow_non_fake_inputs=True)).propagate(*inputs)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"inputs: got {len(inputs)} that the model does not run on ({reason}), expected the "
            "arguments of its forward. Call the model with them first."
        ) from error


def _match(found: Activation, modules: dict[str, nn.Module], operators: Any) -> Producer:
    """Return what to replace. Raises :class:`NoMatch`."""
    if found.constants:
        dtype = producers.operand(found.argument).value.dtype
        if (reason := constants.refusal(found.formula, found.constants, dtype)) is not None:
            raise NoMatch(reason)
    producer = producers.of(found.argument, modules)
    if not hasattr(operators, producer.operator):
        raise NoMatch(f"the operators have no {producer.operator}")
    guards.require(found, producer, modules)
    return producer


def _replace(graph: fx.Graph, found: Activation, producer: Producer, operators: Any) -> Replaced:
    with graph.inserting_before(found.output):
        arguments = [_argument(graph, part) for part in producer.arguments.values()]
        function = getattr(operators, producer.operator)
        call = graph.call_function(function, (*arguments, found.formula))
    call.meta["val"] = found.output.meta["val"]
    inside = found.inside | producer.inside
    place = f"{_name(found.argument)} → {_name(found.output)}"
    found.output.replace_all_uses_with(call)
    for node in reversed(list(graph.nodes)):
        unread = not node.users and kind(node) in ("t", "transpose")
        if node in inside or unread:
            graph.erase_node(node)
    off = constants.deviation(found.formula, found.constants) if found.constants else (0.0,)
    return Replaced(call.name, place, producer.operator, found.formula, max(off))


def _argument(graph: fx.Graph, part: Operand) -> fx.Node:
    if isinstance(part.source, str):
        node = graph.get_attr(part.source)
        node.meta["val"] = part.value
    else:
        node = part.source
    return graph.call_method("t", (node,)) if part.transposed else node


def _name(node: fx.Node) -> str:
    return str(node.target) if node.op == "call_module" else node.name
