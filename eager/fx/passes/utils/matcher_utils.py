"""Where a graph has the shape of another one. As `torch.fx.passes.utils.matcher_utils`."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from eager.core.tensor import Tensor
from eager.fx.graph import Graph
from eager.fx.graph_module import _get_attr
from eager.fx.node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """One place. nodes_map: nodes of the pattern -> those of the graph; anchors: the last nodes of the pattern.

    placeholder_nodes: what stands there for the arguments of the pattern, returning_nodes: for what it returns.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Node] = field(default_factory=dict)
    placeholder_nodes: list[Node] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        lists = (list(self.placeholder_nodes), list(self.returning_nodes))
        return InternalMatch(list(self.anchors), dict(self.nodes_map), *lists)


class SubgraphMatcher:
    """Finds the places where a graph computes what `pattern` does.

    match_output: whether its output is to be the graph's; match_placeholder: whether its arguments are to be arguments;
    remove_overlapping_matches: whether places share no nodes; ignore_literals: whether numbers and the like may differ.
    """

    def __init__(self, pattern: Graph, match_output: bool = False, match_placeholder: bool = False,
                 remove_overlapping_matches: bool = True, ignore_literals: bool = False):  # fmt: skip
        if not len(pattern.nodes):
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.users:
                raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        self.pattern_placeholder_nodes = [node for node in pattern.nodes if node.op == "placeholder"]
        output = pattern.output_node()
        self.pattern_returning_nodes: list[Node] = output.all_input_nodes
        inner = [node for node in self.pattern_returning_nodes if len(node.users) == 1]
        self.pattern_anchors = [output] if match_output else inner

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places, in the order of the graph."""
        found = [m for m in self._places(graph) if self._is_contained(m.nodes_map)]
        for each in found:
            self._name_parts(each)
        if not self.remove_overlapping_matches:
            return found
        taken: set[Node] = set()
        apart: list[InternalMatch] = []
        for each in found:
            own = {n for p, n in each.nodes_map.items() if p.op not in ("placeholder", "output")}
            if not own & taken:
                apart.append(each)
                taken |= own
        return apart

    def _places(self, graph: Graph) -> Iterator[InternalMatch]:
        pending = [InternalMatch([])]
        for anchor in self.pattern_anchors:
            grown: list[InternalMatch] = []
            for partial in pending:
                for node in graph.nodes:
                    attempt = copy.copy(partial)
                    if self._nodes_are_equal(anchor, node) and self._match_nodes(anchor, node, attempt.nodes_map):
                        attempt.anchors.append(anchor)
                        grown.append(attempt)
            pending = grown
        for found in pending:
            if found.anchors:
                yield found

    def _nodes_are_equal(self, pn: Node, gn: Node) -> bool:
        """Whether two nodes do the same, whatever their arguments are."""
        if pn.op == "placeholder" and not self.match_placeholder:
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        if pn.op == "get_attr":
            return self._same_attribute(pn, gn)
        return pn.target == gn.target

    def _same_attribute(self, pn: Node, gn: Node) -> bool:
        """Whether both are tensors of one class, or they are equal."""
        theirs, ours = (_get_attr(node.graph.owning_module, str(node.target)) for node in (pn, gn))
        return type(theirs) is type(ours) if isinstance(theirs, Tensor) else theirs == ours

    def _match_nodes(self, pn: Node, gn: Node, nodes_map: dict[Node, Node]) -> bool:
        """Whether `pn` and what it depends on are at `gn`: then `nodes_map` has them."""
        if pn in nodes_map:
            return nodes_map[pn] is gn
        if gn in nodes_map.values() and pn.op != "placeholder":
            return False
        if not self._nodes_are_equal(pn, gn):
            return False
        kept = dict(nodes_map)
        nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        if self._values_match(_arguments(pn), _arguments(gn), nodes_map):
            return True
        nodes_map.clear()
        nodes_map.update(kept)
        return False

    def _values_match(self, theirs: Any, ours: Any, nodes_map: dict[Node, Node]) -> bool:
        if isinstance(theirs, Node):
            if isinstance(ours, Node):
                return self._match_nodes(theirs, ours, nodes_map)
            return theirs.op == "placeholder" and not self.match_placeholder and self._literal(theirs, ours, nodes_map)
        if isinstance(ours, Node):
            return False
        if isinstance(theirs, (list, tuple)) and isinstance(ours, (list, tuple)):
            pairs = zip(theirs, ours, strict=False)
            return len(theirs) == len(ours) and all(self._values_match(a, b, nodes_map) for a, b in pairs)
        if isinstance(theirs, dict) and isinstance(ours, dict):
            return theirs.keys() == ours.keys() and all(
                self._values_match(theirs[k], ours[k], nodes_map) for k in theirs
            )
        if isinstance(theirs, slice) and isinstance(ours, slice):
            theirs, ours = ([each.start, each.stop, each.step] for each in (theirs, ours))
            return self._values_match(theirs, ours, nodes_map)
        return self.ignore_literals or (type(theirs) is type(ours) and theirs == ours)

    def _literal(self, pattern: Node, value: Any, nodes_map: dict[Node, Any]) -> bool:
        """An argument of the pattern may stand for a number, if always for the same one."""
        if pattern in nodes_map:
            return not isinstance(nodes_map[pattern], Node) and nodes_map[pattern] == value
        nodes_map[pattern] = value
        return True

    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """Whether what the place computes on the way is used nowhere else."""
        ours = {value for value in nodes_map.values() if isinstance(value, Node)}
        free = {*self.pattern_returning_nodes, *self.pattern_placeholder_nodes}
        inner = (node for pattern, node in nodes_map.items() if pattern not in free and pattern.op != "output")
        return all(user in ours for node in inner if node.op != "get_attr" for user in node.users)

    def _name_parts(self, found: InternalMatch) -> None:
        output = self.pattern.output_node()
        found.placeholder_nodes = [found.nodes_map[n] for n in self.pattern_placeholder_nodes if n in found.nodes_map]
        found.returning_nodes = [found.nodes_map[n] for n in output.all_input_nodes if n in found.nodes_map]


def _arguments(node: Node) -> list[Any]:
    """The arguments by position, and then those by name, in the order of the names."""
    return [*node.args, *(each for name in sorted(node.kwargs) for each in (name, node.kwargs[name]))]
