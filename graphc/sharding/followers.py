"""Which inputs belong to others: what a program combines with them element by element, as an optimizer's state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from graphc.ir import Graph
from graphc.sharding.correspondence import is_elementwise


@final
class Followers:
    """Groups of values of one shape that `graph` combines element by element."""

    def __init__(self, graph: Graph):
        self._parent: dict[int, int] = {}
        nodes = graph.nodes
        for node in graph.operations():
            if is_elementwise(node):
                for i in node.inputs:
                    if nodes[i].shape == node.shape and node.shape:
                        self._parent[self._root(i)] = self._root(node.id)

    def _root(self, id: int) -> int:
        while (above := self._parent.setdefault(id, id)) != id:
            id = above
        return id

    def leader(self, id: int, among: Iterable[int]) -> int | None:
        """The first of `among` that is of the group of `id`."""
        root = self._root(id)
        return next((i for i in among if self._root(i) == root), None)
