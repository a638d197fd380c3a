"""A graph is split into modules. As `torch.fx.passes.split_module`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from eager.fx.graph import Graph
from eager.fx.graph_module import GraphModule, _get_attr
from eager.fx.node import Node, map_arg
from eager.nn.module import Module

__all__ = ["split_module"]


@dataclass
class Partition:
    """One of the modules: its nodes, what it takes and gives, and the other partitions that it needs."""

    name: str
    nodes: list[Node] = field(default_factory=list)
    inputs: dict[Node, None] = field(default_factory=dict)
    outputs: dict[Node, None] = field(default_factory=dict)
    needs: dict[str, None] = field(default_factory=dict)
    graph: Graph = field(default_factory=Graph)
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def submod_name(self) -> str:
        """What the module is called."""
        return f"submod_{self.name}"

    def build(self, root: Module, qualname_map: dict[str, str] | None) -> GraphModule:
        """The module. qualname_map: takes the path of each of its submodules, here -> in `root`."""
        env = {node: self.graph.placeholder(node.name, node.type) for node in self.inputs}
        for node in self.nodes:
            args, kwargs = (map_arg(each, lambda used: env[used]) for each in (node.args, node.kwargs))
            target = node.target
            if node.op == "call_module":
                target = str(node.target).replace(".", "_")
                self.attributes[target] = _get_attr(root, str(node.target))
                if qualname_map is not None:
                    qualname_map[f"{self.submod_name}.{target}"] = str(node.target)
            env[node] = self.graph.create_node(node.op, target, args, kwargs, type_expr=node.type)
            env[node].meta = dict(node.meta)
        results = tuple(env[node] for node in self.outputs)
        if results:
            self.graph.output(results[0] if len(results) == 1 else results)
        return GraphModule(self.attributes, self.graph)


def split_module(m: GraphModule, root_m: Module, split_callback: Callable[[Node], Any],
                 qualname_map: dict[str, str] | None = None, keep_original_order: bool | None = False,
                 **unused_settings: Any) -> GraphModule:  # fmt: skip
    """A module that calls one module for each value of `split_callback`, of which each has the nodes of that value.

    root_m: has the attributes that the graph names; qualname_map: takes the path of each submodule of the new modules
    -> that in `root_m`; keep_original_order: whether modules are called in the order of their first nodes. ValueError
    if two need each other.
    """
    partitions = _partitions(m.graph, split_callback)
    ordered = [*partitions.values()] if keep_original_order else _sorted(partitions)
    graph, env = Graph(), {}
    attributes: dict[str, Any] = {}
    late: dict[Node, None] = {}
    for node in m.graph.nodes:
        if node.op == "placeholder":
            default = node.args[0] if node.args else ...
            env[node] = graph.placeholder(str(node.target), node.type, default)
            env[node].meta = dict(node.meta)
        elif node.op == "get_attr":
            late[node] = None

    def read(node: Node) -> Node:
        if node not in env:
            env[node] = graph.get_attr(str(node.target))
            env[node].meta = dict(node.meta)
            attributes[str(node.target)] = _get_attr(m, str(node.target))
        return env[node]

    if not keep_original_order:
        for node in late:
            read(node)
    for each in ordered:
        attributes[each.submod_name] = each.build(root_m, qualname_map)
        call = graph.call_module(
            each.submod_name, tuple(read(node) if node in late else env[node] for node in each.inputs)
        )
        if len(each.outputs) == 1:
            env[next(iter(each.outputs))] = call
        else:
            parts = (graph.call_function(operator.getitem, (call, at)) for at in range(len(each.outputs)))
            env.update(zip(each.outputs, parts, strict=True))
    for node in m.graph.nodes:
        if node.op == "output":
            result = map_arg(node.args[0], lambda used: read(used) if used in late else env[used])
            graph.output(result).meta = dict(node.meta)
    return GraphModule(attributes, graph)


def _partitions(graph: Graph, split_callback: Callable[[Node], Any]) -> dict[str, Partition]:
    found: dict[str, Partition] = {}
    of_node: dict[Node, str] = {}
    for node in graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            of_node[node] = name = str(split_callback(node))
            found.setdefault(name, Partition(name)).nodes.append(node)
    for node in graph.nodes:
        user = of_node.get(node)
        for used in node.all_input_nodes:
            maker = of_node.get(used)
            if maker == user:
                continue
            if maker is not None:
                found[maker].outputs.setdefault(used)
            if user is not None:
                found[user].inputs.setdefault(used)
                if maker is not None:
                    found[user].needs.setdefault(maker)
    return found


def _sorted(partitions: dict[str, Partition]) -> list[Partition]:
    """Each behind those that it needs. ValueError if two need each other."""
    done: dict[str, Partition] = {}
    while len(done) < len(partitions):
        ready = [each for name, each in partitions.items() if name not in done and each.needs.keys() <= done.keys()]
        if not ready:
            raise ValueError("cycle exists between partitions!")
        done.update((each.name, each) for each in ready)
    return list(done.values())
