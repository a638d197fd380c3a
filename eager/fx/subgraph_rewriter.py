"""Parts of a graph are replaced: both are written as functions. As `torch.fx.subgraph_rewriter`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from eager.fx._symbolic_trace import symbolic_trace
from eager.fx.graph import Graph
from eager.fx.graph_module import GraphModule, _assign_attr, _get_attr, _has_attr
from eager.fx.node import Node
from eager.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from eager.nn.module import Module

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]

Filter = Callable[[InternalMatch, Graph, Graph], bool]
OTHER_COUNT = "The replacement graph has {} {}, where the pattern has {}"


class Match(NamedTuple):
    """A place that was replaced: its last node, and the nodes of the pattern -> those of the graph."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A Match, and the nodes that are there now."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace each part of the graph of `gm` that computes `pattern` by `replacement`; both take the same arguments.

    They are functions, modules or GraphModules. A part is found if it has the same ops and constants, and what it
    computes on the way is used nowhere else. Places do not overlap: the first in the graph's order count. Returns them.
    """
    return [Match(each.anchor, each.nodes_map) for each in _replace_pattern(gm, pattern, replacement)]


def replace_pattern_with_filters(gm: GraphModule, pattern: Any, replacement: Any = None,
                                 match_filters: list[Filter] | None = None, ignore_literals: bool = False,
                                 replacement_callback: Any = None,
                                 node_name_match: str = "") -> list[ReplacedPatterns]:  # fmt: skip
    """`replace_pattern` at the places of which each filter, given (place, graph, graph of the pattern), holds.

    ignore_literals: whether numbers in the pattern may stand for others; replacement_callback: gives the graph for a
    place, of what filters are given.
    """
    return _replace_pattern(gm, pattern, replacement, match_filters, ignore_literals, replacement_callback)


def _graph_of(value: Any) -> Graph:
    if isinstance(value, Graph):
        return value
    return value.graph if isinstance(value, GraphModule) else symbolic_trace(value).graph


def _replace_pattern(gm: GraphModule, pattern: Any, replacement: Any = None, match_filters: list[Filter] | None = None,
                     ignore_literals: bool = False,
                     replacement_callback: Any = None) -> list[ReplacedPatterns]:  # fmt: skip
    wanted = _graph_of(pattern)
    matcher = SubgraphMatcher(wanted, ignore_literals=ignore_literals)
    places = [each for each in matcher.match(gm.graph) if all(ok(each, gm.graph, wanted) for ok in match_filters or ())]
    common = None if replacement is None else _graph_of(replacement)
    changed: dict[Node, Node] = {}  # nodes that an earlier replacement has taken out -> those that are there now
    replaced: list[ReplacedPatterns] = []
    for place in places:
        new = replacement_callback(place, gm.graph, wanted) if common is None else common
        replaced.append(_replace_at(gm.graph, wanted, place, new, changed))
    gm.recompile()
    if isinstance(replacement, Module):
        _take_attributes(gm, replacement)
    return replaced


def _replace_at(graph: Graph, wanted: Graph, place: InternalMatch, new: Graph,
                changed: dict[Node, Node]) -> ReplacedPatterns:  # fmt: skip
    arguments = [node for node in new.nodes if node.op == "placeholder"]
    if len(arguments) != len(place.placeholder_nodes):
        raise AssertionError(OTHER_COUNT.format(len(arguments), "arguments", len(place.placeholder_nodes)))
    given = [_now(node, changed) for node in place.placeholder_nodes]
    place.nodes_map.update(
        (p, _now(place.nodes_map[p], changed)) for p in place.nodes_map if p.op == "placeholder"
    )  # fmt: skip
    val_map: dict[Node, Any] = dict(zip(arguments, given, strict=True))
    inside = {node for p, node in place.nodes_map.items() if p.op not in ("placeholder", "output")}
    users = {user for node in place.returning_nodes for user in node.users} - inside
    first = next(node for node in graph.nodes if node in users) if users else graph.output_node()
    with graph.inserting_before(first):
        result = graph.graph_copy(new, val_map)
    results = [result] if isinstance(result, Node) else list(result)
    if len(results) != len(place.returning_nodes):
        raise AssertionError(OTHER_COUNT.format(len(results), "results", len(place.returning_nodes)))
    for old, node in zip(place.returning_nodes, results, strict=True):
        old.replace_all_uses_with(node)
        changed[old] = node
    for node in reversed(wanted.nodes):
        if node.op not in ("placeholder", "output") and node in place.nodes_map:
            found = place.nodes_map[node]
            if not found.users:
                graph.erase_node(found)
    made = [val_map[node] for node in new.nodes if node in val_map and node.op not in ("placeholder", "output")]
    return ReplacedPatterns(place.anchors[0], place.nodes_map, made)


def _now(node: Any, changed: dict[Node, Node]) -> Any:
    while isinstance(node, Node) and node in changed:
        node = changed[node]
    return node


def _take_attributes(gm: GraphModule, replacement: Module) -> None:
    """Let `gm` have what the replacement names, and not what nobody names any more."""
    for node in gm.graph.nodes:
        path = str(node.target)
        if node.op in ("call_module", "get_attr") and not _has_attr(gm, path):
            _assign_attr(copy.deepcopy(_get_attr(replacement, path)), gm, path)
    gm.delete_all_unused_submodules()
    gm.graph.lint()
