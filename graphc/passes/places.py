"""Elements picked by constants that lie in equal steps, as slices, reversals, repetitions: forms of what they are of.

`repeat_interleave` picks 0, 0, 1, 1, ...; a gather of such places copies, and no product goes past it. What is put at
such places into zeros, its gradient, is a sum over the repetitions, laid there.
"""

from __future__ import annotations

import numpy as np

from graphc.facts.held import Held
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.normal.affine import Index, Unsolved, label
from graphc.normal.emit import emit
from graphc.normal.form import Factor, Form, tidy
from graphc.ops import OPS
from graphc.passes.replacing import replaced

_INDEX, _PUT = OPS["index"], OPS["index_put"]
MOST_DIGITS = 3

Digits = tuple[int, list[tuple[int, int]]]  # the first place; (how many, step) of each digit, the fastest last


def regular_places(graph: Graph) -> Graph:
    """`graph` with what is picked from regular places, or put there into zeros, by movements and sums."""
    if _INDEX not in graph.ops and _PUT not in graph.ops:
        return graph
    held = Held(graph.nodes)
    found = {id: form for id, node in graph.nodes.items() if (form := _form(node, graph, held)) is not None}
    if not found:
        return graph
    builder = Builder.beside(graph.nodes)
    return replaced(graph, builder, lambda node: _written(builder, found[node.id], node) if node.id in found else None)


def _written(builder: Builder, form: Form, node: Node) -> Symbol | None:
    ((factor,),) = [t.factors for t in form.terms]
    mark = builder.next_id
    try:
        found = emit(builder, form, {factor.atom: builder.symbol(node.inputs[factor.atom])}, node.dtype)
    except Unsolved:
        found = None
    if found is None or found.aval != node.aval:
        builder.rollback(mark)
        return None
    if node.op is _PUT and node.params["accumulate"]:  # to zeros: -0.0 becomes 0.0
        return found + builder.language.full(shape=(), value=0, dtype=node.dtype)
    return found


def _form(node: Node, graph: Graph, held: Held) -> Form | None:
    """What a node is of its operand 0, or of what it puts, its operand 1, if its places are regular."""
    if node.op is not _INDEX and node.op is not _PUT:
        return None
    operands = [graph.nodes[i] for i in node.inputs]
    if not all(type(n) is int for x in (node, *operands) for n in x.shape):
        return None
    whole, part = (operands[0], node) if node.op is _INDEX else (node, operands[1])
    spec, places = node.params["spec"], operands[-1]
    chosen = [axis for axis, k in enumerate(spec) if k is not None]
    if len(operands) != (2 if node.op is _INDEX else 3) or len(chosen) != 1 or len(places.shape) != 1:
        return None
    (axis,) = chosen
    if part.shape != (*whole.shape[:axis], *places.shape, *whole.shape[axis + 1 :]) or part.dtype != whole.dtype:
        return None
    values = held.value(places.id)
    digits = None if values is None else _digits(values, whole.shape[axis])
    if values is None or digits is None:
        return None
    first, steps = digits
    if node.op is _PUT and not _adds_up(node, len(set(values.tolist())) < values.size, held):
        return None
    rank = len(whole.shape)
    sizes = [*(n for k, n in enumerate(whole.shape) if k != axis), *(n for n, _ in steps)]
    others = iter(range(rank - 1))
    plain = {k: label(next(others)) for k in range(rank) if k != axis}
    there, own, stride = Index(first), Index(0), 1
    for k, (n, step) in reversed([*enumerate(steps, rank - 1)]):
        there, own, stride = there + label(k) * step, own + label(k, stride), stride * n
    of_whole = tuple([plain.get(k, there) for k in range(rank)])
    of_part = tuple([plain.get(k, own) for k in range(rank)])
    picks = node.op is _INDEX
    term = tidy(1, [Factor(0, of_whole) if picks else Factor(1, of_part)], of_part if picks else of_whole, sizes)
    return None if term is None else Form(node.shape, (term,))


def _adds_up(node: Node, meet: bool, held: Held) -> bool:
    """Whether values are put into zeros, and those that meet are added up."""
    into = held.value(node.inputs[0])
    return into is not None and not into.any() and (node.params["accumulate"] or not meet)


def _digits(values: np.ndarray, size: int) -> Digits | None:
    """Places, each within `size` and perhaps counted from the end, as a number with few digits."""
    if values.dtype.kind not in "iu" or not values.size:
        return None
    left = np.where(values < 0, values + size, values).astype(np.int64)
    if left.min() < 0 or left.max() >= size:
        return None
    first, steps = int(left[0]), list[tuple[int, int]]()
    while len(left) > 1:
        differences = np.diff(left)
        step = int(differences[0])
        (ends,) = np.nonzero(differences != step)
        n = int(ends[0]) + 1 if len(ends) else len(left)
        if len(steps) == MOST_DIGITS or len(left) % n:
            return None
        rows = left.reshape(-1, n)
        if not (rows == rows[:, :1] + step * np.arange(n)).all():
            return None
        steps.insert(0, (n, step))
        left = rows[:, 0]
    return first, steps
