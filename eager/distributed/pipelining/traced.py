"""A model in stages: what it calls is traced by torch.fx, and split where a layer begins or ends.

Only modules that have such a layer inside are traced through; the others are one node each, so what they do need not be
traceable. A stage gives what later ones need, also if that is from an earlier one: it passes through those between.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, final

from eager.fx import Graph, GraphModule, Node, Tracer
from eager.fx.tracer import _assert_is_none
from eager.nn import Module

NO_LAYER = "pipeline: no layer {name!r} to split at is called; the layers are {layers}"
NO_STAGE = "pipeline: the split at {name!r} leaves a stage without layers"
_KEPT = ("placeholder", "get_attr", "output")  # what is of no stage alone


@final
class _Splitting(Tracer):
    """Traces through the modules that have one of `names` inside."""

    def __init__(self, names: Sequence[str]):
        super().__init__()
        self._names = names

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module is one node."""
        return not any(name.startswith(f"{module_qualified_name}.") for name in self._names)


def split(module: Module, ends: Mapping[str, bool], given: tuple[Any, ...]) -> list[GraphModule]:
    """The stages of `module`, with the modules and parameters that it has, by its names.

    ends: the layers to split at, by name: whether behind them; given: arguments, those left out are as by default.
    ValueError for a layer that is not called, and for a stage without calls.
    """
    graph = _traced(module, [*ends], given)
    calls = [node for node in graph.nodes if node.op not in _KEPT]
    cuts = {0, len(calls)}
    for name, end in ends.items():
        of = [k for k, node in enumerate(calls) if node.op == "call_module" and _is_in(str(node.target), name)]
        if not of:
            layers = ", ".join(path for path, _ in module.named_modules() if path)
            raise ValueError(NO_LAYER.format(name=name, layers=layers))
        cut = of[-1] + 1 if end else of[0]
        if cut in cuts:
            raise ValueError(NO_STAGE.format(name=name))
        cuts.add(cut)
    ordered = sorted(cuts)
    number = {node: sum(k >= cut for cut in ordered[1:]) for k, node in enumerate(calls)}
    return [_stage(module, graph, number, k, len(ordered) - 1) for k in range(len(ordered) - 1)]


def _is_in(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name}.")


def _traced(module: Module, names: Sequence[str], given: tuple[Any, ...]) -> Graph:
    signature = inspect.signature(module.forward)
    bound = signature.bind_partial(*given).arguments
    usual = {
        name: p.default for name, p in signature.parameters.items()
        if p.default is not p.empty and given and name not in bound
    }  # fmt: skip
    graph = _Splitting(names).trace(module, usual or None)
    for node in reversed([*graph.nodes]):  # arguments that are left out are none of a stage
        asked = node.op == "call_function" and node.target is _assert_is_none
        if asked or (node.op == "placeholder" and not node.users and str(node.target).removesuffix("_1") in usual):
            graph.erase_node(node)
    return graph


def _stage(module: Module, graph: Graph, number: Mapping[Node, int], k: int, count: int) -> GraphModule:
    """Stage `k`, of the nodes that have its number."""
    own, env = Graph(), dict[Node, Node]()
    for node in _crossing(graph, number, k, count):
        default = node.args[0] if k == 0 and node.args else ...
        env[node] = own.placeholder(str(node.target) if k == 0 else node.name, node.type, default)

    def read(node: Node) -> Node:
        if node.op == "get_attr" and node not in env:
            env[node] = own.node_copy(node)
        return env[node]

    for node, where in number.items():
        if where == k:
            for used in node.all_input_nodes:
                read(used)
            env[node] = own.node_copy(node, read)
    if k == count - 1:
        last = next(node for node in graph.nodes if node.op == "output")
        for used in last.all_input_nodes:
            read(used)
        own.node_copy(last, read)
    else:
        results = tuple(env[node] for node in _crossing(graph, number, k + 1, count))
        own.output(results[0] if len(results) == 1 else results)
    stage = GraphModule(module, own, f"{type(module).__name__}Stage{k}")
    stage.training = module.training
    return stage


def _crossing(graph: Graph, number: Mapping[Node, int], k: int, count: int) -> list[Node]:
    """What stage `k` takes, in the order of the model: arguments, for the first; what is made before for it and later
    ones."""

    def made(node: Node) -> int:
        return -1 if node.op == "placeholder" else number.get(node, count)

    if k == 0:
        return [node for node in graph.nodes if node.op == "placeholder"]
    return [
        node for node in graph.nodes
        if made(node) < k and any(number.get(user, count - 1) >= k for user in node.users)
    ]  # fmt: skip
