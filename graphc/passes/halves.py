"""Sums of a solution times its right side: y^T A^-1 y is |C^-1 y|^2 where A = C C^T, which takes half of the solution.

Diagonals of hat matrices, distances by Mahalanobis, variances of Gaussian processes are such sums. Nothing is gained
where something else reads the solution, as gradients do.
"""

from __future__ import annotations

from typing import final

from graphc.facts.known import Facts
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ir.matrices import transposes
from graphc.ops import OPS
from graphc.passes.replacing import replaced

_SOLVE, _SUM, _MUL = OPS["solve"], OPS["sum"], OPS["mul"]


def halve_solutions(graph: Graph) -> Graph:
    """`graph` with such sums as quadratic forms."""
    return _Halves(graph).written() if _SOLVE in graph.ops and _SUM in graph.ops else graph


@final
class _Halves:
    def __init__(self, graph: Graph):
        self._graph = graph
        self._users = graph.users()
        self._builder = Builder.beside(graph.nodes)
        self._facts = Facts(self._builder.nodes)

    def written(self) -> Graph:
        return replaced(self._graph, self._builder, self._written)

    def _written(self, node: Node) -> Symbol | None:
        nodes, F = self._builder.nodes, self._builder.language
        if node.op is not _SUM:
            return None
        product = nodes[node.inputs[0]]
        if product.op is not _MUL or len(product.shape) != 2 or not self._is_alone(product.id):
            return None
        for solution, other in (product.inputs, product.inputs[::-1]):
            id, turned = self._base(solution)
            solved = nodes[id]
            if solved.op is not _SOLVE or not self._is_alone(solution) or not self._is_alone(id):
                continue
            matrix, right = solved.inputs
            (a, once), (b, twice) = self._base(right), self._base(other)
            inner = int(turned)  # the axis over which a row of A^-1 is summed
            if a != b or (once != twice) != turned or inner not in node.params["axis"]:
                continue
            if solved.dtype.kind != "f" or not self._facts.symmetric(matrix):
                continue
            found = F.quadratic(self._builder.symbol(matrix), self._builder.symbol(right), **solved.params)
            if len(node.params["axis"]) == 2:
                found = F.sum(found, axis=(0,), keepdims=False)
            return F.reshape(found, shape=node.shape)
        return None

    def _is_alone(self, id: int) -> bool:
        """Whether one node reads it, and no result is."""
        return len(self._users.get(id, ())) == 1 and id not in self._graph.outputs

    def _base(self, id: int) -> tuple[int, bool]:
        """What a node is, or is the transpose of."""
        node = self._builder.nodes[id]
        return (node.inputs[0], True) if transposes(node) else (id, False)
