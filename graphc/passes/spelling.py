"""Other ops as sums of products see them: quotients by smaller arrays, convolutions whose kernels do not slide, masks.

(u v^T / s) B is u (v^T B) / s, with 1 / s as an atom; two convolutions by one pixel are one, by the product of their
kernels. `where(mask, x, 0)` is a product with a constant of blocks, or of ones but for a diagonal. What no region has
written anew is as it was afterwards: quotients round otherwise, and convolutions have kernels of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from string import ascii_letters
from typing import final

import numpy as np

from graphc.facts.held import MOST, Held
from graphc.ir import INPUT, Builder, Graph, Node, Symbol
from graphc.normal.affine import Unsolved
from graphc.normal.form import Algebra, Form
from graphc.ops import OPS, Trait
from graphc.ops.dtypes import is_floating, is_inexact
from graphc.ops.labels import words
from graphc.passes.fold import LARGEST

_DIV, _WHERE = OPS["div"], OPS["where"]
_SLIDING = Trait.CONTRACTS | Trait.PADS

Nodes = Mapping[int, Node]
Spelled = Callable[[Builder], Symbol]


def multilinear(graph: Graph) -> Graph:
    """`graph` with such ops as products, which have their ids."""
    masks = _Masks(graph)
    found = {
        id: way
        for id, node in graph.nodes.items()
        if (way := _quotient(node, graph) or _product(node, graph) or masks.spelled(node))
    }
    if not found:
        return graph
    builder = Builder.beside(graph.nodes)
    for id, node in graph.nodes.items():
        if id not in found:
            builder.nodes[id] = node
            continue
        builder.where, builder.scope = node.where, node.scope
        last = builder.nodes.pop(found[id](builder).id)
        builder.nodes[id] = Node(id, last.op, last.inputs, last.params, node.results, node.where, node.scope)
    return graph.replace(builder.nodes, graph.result)


def as_before(graph: Graph, spelled: Graph, before: Graph) -> Graph:
    """`graph`, made of `spelled`, with what it still has of the products in it as what they were in `before`."""
    if spelled is before:
        return graph
    nodes = dict(graph.nodes)
    for id, node in graph.nodes.items():
        old = before.nodes.get(id)
        if old is not None and old is not spelled.nodes[id] and old.op is not spelled.nodes[id].op:
            operands: dict[int, int] = {}
            if _matched(spelled.nodes[id], node, old.inputs, spelled.nodes, graph.nodes, operands):
                nodes[id] = old.on(tuple([operands.get(i, i) for i in old.inputs]))
    return graph.replace(nodes, graph.result)


def _matched(
    template: Node, node: Node, leaves: tuple[int, ...], spelled: Nodes, nodes: Nodes, operands: dict[int, int]
) -> bool:
    """Whether a node is still what the template is; `operands` gets what its leaves are now."""
    if template.key(()) != node.key(()) or template.results != node.results:
        return False
    for i, j in zip(template.inputs, node.inputs, strict=True):
        if i in leaves:
            if operands.setdefault(i, j) != j:
                return False
        elif not _matched(spelled[i], nodes[j], leaves, spelled, nodes, operands):
            return False
    return True


def _quotient(node: Node, graph: Graph) -> Spelled | None:
    """x (1 / y) for x / y, if y is smaller and no number: forms know numbers."""
    if node.op is not _DIV or not is_inexact(node.dtype) or not _has_numbers(node):
        return None
    x, y = (graph.nodes[i] for i in node.inputs)
    if not (y.inputs or y.op is INPUT) or y.size >= node.size or not x.dtype == y.dtype == node.dtype:
        return None
    return lambda b: b.symbol(x.id) * b.language.reciprocal(b.symbol(y.id))


def _has_numbers(node: Node) -> bool:
    return all(type(n) is int for n in node.shape)


@final
class _Masks:
    """What masks leave of arrays that no input changes, and such arrays themselves, as constants that forms know."""

    def __init__(self, graph: Graph):
        self._graph = graph
        self._nodes = graph.nodes
        self._users: dict[int, list[int]] = {}  # once they are asked for
        self._held = Held(graph.nodes)
        self._finite: dict[int, bool] = {}

    def spelled(self, node: Node) -> Spelled | None:
        """How a node is written as a constant, or as a product with one."""
        if node.op.several or not is_floating(node.dtype) or not _has_numbers(node) or not LARGEST < node.size <= MOST:
            return None
        if node.op is not _WHERE:
            made = bool(node.inputs) and not node.op.view and self._held.is_held(node.id)
            value = self._held.value(node.id) if made and self._is_read(node.id) else None
            return None if value is None or _form(value) is None else lambda b: b.variable(value)
        mask, *ways = node.inputs
        empty = [self._is_zero(i) for i in ways]
        x = self._nodes[ways[empty[0]]]
        if sum(empty) != 1 or self._nodes[mask].shape != node.shape or x.results != node.results:
            return None
        chosen = self._held.value(mask)
        if chosen is None:
            return None
        value = (~chosen if empty[0] else chosen).astype(node.dtype)
        form = _form(value)
        # what masks hide of x is taken away from all of it
        if form is None or (_overlaps(form) and not self._is_finite(x.id)):
            return None
        return lambda b: b.symbol(x.id) * b.constant(value)

    def _is_read(self, id: int) -> bool:
        """Whether what depends on inputs reads a node."""
        self._users = self._users or self._graph.users()
        return any(not self._held.is_held(k) for k in self._users.get(id, ()))

    def _is_zero(self, id: int) -> bool:
        value = self._held.value(id)
        return value is not None and not value.any() and not np.signbit(value).any()

    def _is_finite(self, id: int) -> bool:
        """Whether a node is finite where inputs are, but for overflow."""
        if id not in self._finite:
            node = self._nodes[id]
            op = node.op
            plain = not node.inputs or op.lifting is not None or op is _WHERE or bool(op.traits & Trait.IDENTITY)
            bounded = op.image is not None and not callable(op.image) and all(map(math.isfinite, op.image))
            self._finite[id] = (plain or bounded) and all(map(self._is_finite, node.inputs))
        return self._finite[id]


def _form(value: np.ndarray) -> Form | None:
    """The form of a constant that has one number in most places, and others in boxes or on diagonals."""
    try:
        return Algebra().constant(value)
    except Unsolved:
        return None


def _overlaps(form: Form) -> bool:
    """Whether what one term has put somewhere another takes away."""
    return len(form.terms) > 1 and any(t.coefficient < 0 for t in form.terms)


def _product(node: Node, graph: Graph) -> Spelled | None:
    """The einsum that a convolution is, or a gradient of one, with a kernel of one element or of all of the image."""
    op = node.op
    if op.traits & _SLIDING != _SLIDING or op.dims is None or not _has_numbers(node):
        return None
    if {*node.params["stride"]} != {1} or any(node.params["padding"]) or node.params["groups"] != 1:
        return None
    arrays = [*[graph.nodes[i] for i in node.inputs], node]
    if not all(map(_has_numbers, arrays)):
        return None
    shapes = [array.shape for array in arrays]
    found = words(op.dims, shapes[:-1], shapes[-1:], node.params)
    named = [*found.operands, *found.results]
    windows = [tuple([n for n, word in zip(shape, own, strict=True) if word is None]) for shape, own in
               zip(shapes, named, strict=True)]  # fmt: skip
    largest = max(windows)
    one = (1,) * len(largest)
    if sorted(windows) != sorted([one, largest, largest]):
        return None  # it slides
    letters: dict[object, str] = {}
    spelling: list[str] = []
    kept: list[tuple[int, ...]] = []
    alone = windows.index(one)
    for k, (shape, own) in enumerate(zip(shapes, named, strict=True)):
        keys = [word if word is not None else d for d, word in enumerate(own)]
        dims = [d for d, word in enumerate(own) if word is not None or k != alone]
        spelling.append("".join([letters.setdefault(keys[d], ascii_letters[len(letters)]) for d in dims]))
        kept.append(tuple([shape[d] for d in dims]))
    equation = f"{','.join(spelling[:-1])}->{spelling[-1]}"

    def written(b: Builder) -> Symbol:
        operands = [
            b.symbol(i) if shape == whole else b.language.reshape(b.symbol(i), shape=shape)
            for i, shape, whole in zip(node.inputs, kept, shapes, strict=False)
        ]
        result = b.language.einsum(*operands, equation=equation)
        return result if result.shape == node.shape else b.language.reshape(result, shape=node.shape)

    return written
