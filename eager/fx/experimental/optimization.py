"""Changes of graphs that make inference faster. As `torch.fx.experimental.optimization`, without MKL-DNN."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from eager.fx._symbolic_trace import symbolic_trace
from eager.fx.graph import Graph
from eager.fx.graph_module import GraphModule
from eager.fx.interpreter import Transformer
from eager.fx.node import Node
from eager.nn.module import Module
from eager.nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from eager.nn.modules.conv import Conv1d, Conv2d, Conv3d
from eager.nn.modules.dropout import Dropout
from eager.nn.utils.fusion import fuse_conv_bn_eval

__all__ = ["extract_subgraph", "fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]

PATTERNS = ((Conv1d, BatchNorm1d), (Conv2d, BatchNorm2d), (Conv3d, BatchNorm3d))


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Whether `node` calls a module of the second class of `pattern` on what one of the first class gives."""
    if not node.args or not isinstance(node.args[0], Node):
        return False
    return all(
        each.op == "call_module" and type(modules.get(str(each.target))) is wanted
        for wanted, each in zip(pattern, (node.args[0], node), strict=True)
    )


def replace_node_module(node: Node, modules: dict[str, Any], new_module: Module) -> None:
    """Let the module that `node` calls be `new_module`. modules: path -> module."""
    path, _, name = str(node.target).rpartition(".")
    modules[str(node.target)] = new_module
    setattr(modules[path], name, new_module)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> Module:
    """A module for inference, whose convolutions have the batch norms that follow them in their weights.

    inplace: whether to change `model` itself; no_trace: whether it is a GraphModule whose graph is to be used.
    """
    model = model if inplace else copy.deepcopy(model)
    traced: Any = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for pattern in PATTERNS:
        for node in graph.nodes:
            if not matches_module_pattern(pattern, node, modules) or len(node.args[0].users) > 1:
                continue
            convolution, norm = modules[str(node.args[0].target)], modules[str(node.target)]
            if norm.track_running_stats:
                replace_node_module(node.args[0], modules, fuse_conv_bn_eval(convolution, norm))
                node.replace_all_uses_with(node.args[0])
                graph.erase_node(node)
    return GraphModule(traced, graph)


class _WithoutDropout(Transformer):
    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(self.submodules[target], Dropout):
            return args[0]
        return super().call_module(target, args, kwargs)


def remove_dropout(model: Module) -> Module:
    """A module without the calls of Dropout."""
    return _WithoutDropout(symbolic_trace(model)).transform()


def extract_subgraph(orig_module: Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]) -> GraphModule:
    """A module of these nodes, in order, which takes `inputs` and gives `outputs`."""
    graph = Graph()
    env: dict[Node, Node] = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        env[node] = graph.node_copy(node, lambda used: env[used])
    graph.output([env[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)
