"""A traced function as a module of `torch.fx`, whose calls are ops of `torch.ops.aten`: what `make_fx` gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from operator import getitem
from typing import Any

import numpy as np

from eager.core.parameter import Parameter
from eager.core.pytree import flatten
from eager.core.tensor import Tensor
from eager.fx.graph import Graph
from eager.fx.graph_module import GraphModule
from eager.nn.module import Module
from eager.surface.dispatcher import keywords, told
from graphc.capture.sources import Argument, Captured, Draw
from graphc.capture.trace import capture
from graphc.errors import CaptureError
from graphc.ir.graph import INPUT, Node, fill
from graphc.ir.structure import ITEM
from graphc.ops import OPS, Op, Trait

OTHER_INPUTS = "make_fx: {} reads {}, which is no tensor that a module can keep. Remedy: give what it is as an argument"
CHANGES = "make_fx: {} changes tensors that outlive the call. Remedy: return their new values"
LOOPS = "make_fx: {} has {} in it, a program of its own. Remedy: graphc.trace gives its graph"
_CONSTANT = OPS["constant"]


def graph_module(fn: Callable[..., Any], args: Sequence[Any]) -> GraphModule:
    """The ops of `fn(*args)`, with a placeholder for each leaf of the arguments. What `fn` reaches, it keeps.

    CaptureError for what calls of ops cannot express, as random numbers, writes and loops.
    """
    program = capture(fn, tuple(args), {})
    graph, name = program.graph, program.graph.name
    if program.effects.tensors or program.effects.state:
        raise CaptureError(CHANGES.format(name))
    building = _Building()
    given = building.placeholders(fn, args)
    for id, source in zip(graph.inputs, program.sources, strict=True):
        if isinstance(source, Argument):
            building.values[id] = given[source.position]
        elif isinstance(source, Captured):
            building.values[id] = building.kept(source.tensor)
        else:
            what = "random numbers" if isinstance(source, Draw) else "what Python may change"
            raise CaptureError(OTHER_INPUTS.format(name, what))
    for node in graph.nodes.values():
        if node.op is not INPUT:
            if node.op.traits & Trait.STRUCTURED and node.op is not ITEM:
                raise CaptureError(LOOPS.format(name, node.op.name))
            building.values[node.id] = building.made(node)
    values = {id: building.node_of(value) for id, value in building.values.items() if id in graph.outputs}
    building.graph.output(fill(graph.result, values))
    return GraphModule(building.root, building.graph, name)


class _Building:
    """The graph, the module that keeps tensors for it, and what stands for values: nodes, or arrays of constants."""

    def __init__(self) -> None:
        self.graph, self.root = Graph(), Module()
        self.values: dict[int, Any] = {}
        self._kept: dict[str, int] = {}

    def placeholders(self, fn: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
        """One for each leaf of the arguments; those of tensors."""
        names = [*inspect.signature(fn).parameters]
        of_tensors = []
        for position, given in enumerate(args):
            name = names[min(position, len(names) - 1)]
            for number, leaf in enumerate(flatten(given)[0], 1):
                node = self.graph.placeholder(f"{name}_{number}")
                if isinstance(leaf, Tensor):
                    of_tensors.append(node)
        return of_tensors

    def kept(self, tensor: Tensor) -> Any:
        """What reads a tensor that the module keeps from now on."""
        kind = "_param_constant" if isinstance(tensor, Parameter) else "_tensor_constant"
        number = self._kept[kind] = self._kept.get(kind, -1) + 1
        setattr(self.root, f"{kind}{number}", tensor)
        return self.graph.get_attr(f"{kind}{number}")

    def node_of(self, value: Any) -> Any:
        return self.kept(Tensor._wrap(value)) if isinstance(value, np.ndarray) else value

    def made(self, node: Node) -> Any:
        """What stands for the value of a node."""
        if node.op is _CONSTANT:
            return node.params["value"].array
        operands = [self.values[id] for id in node.inputs]
        if node.op is ITEM:
            return self.graph.call_function(getitem, (operands[0], node.params["index"]))
        numbers = [
            isinstance(x, np.ndarray) and not x.ndim and _may_be_number(node.op, k) for k, x in enumerate(operands)
        ]
        if not all(numbers):
            operands = [x.item() if number else x for x, number in zip(operands, numbers, strict=True)]
        operands = [self.node_of(x) for x in operands]
        function = told(node.op, operands)
        shown = function.overloadpacket.__name__
        return self.graph.create_node("call_function", function, tuple(operands), keywords(node.params), name=shown)


def _may_be_number(op: Op, operand: int) -> bool:
    """Whether an op takes a Python number there, with the result that a 0-d array of the same dtype as others has."""
    scalars = op.rule.scalars if op.rule.promote and operand >= op.rule.first else ""
    return len(op.args) > 1 and (scalars == "any" or (scalars != "" and operand == len(op.args) - 1))
