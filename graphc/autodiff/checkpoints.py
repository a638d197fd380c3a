"""The gradient of a loop of unknown length, in memory of known size.

The forward loop counts its steps, and keeps its carry every 2**shift steps in one of ROWS rows. When the rows are full,
shift grows by one: every second row is free again. The backward loop goes through the steps from the last one; for each
stretch of 2**shift steps it runs the stretch once more, keeping the carries in rows again, and starts from the nearest
of these. So up to ROWS**2 steps cost one more forward pass, and any number of steps is right.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.autodiff.control import active_carries, pulled_graph, zeros
from graphc.autodiff.reverse import STRUCTURED, Shares
from graphc.ir import Builder, Graph, Node, Ref, Symbol
from graphc.ir.structure import WHILE, emit, inline
from graphc.ops.aval import Aval
from graphc.ops.dtypes import INT32

LOG_ROWS = 6
ROWS = 1 << LOG_ROWS
_COUNT = Aval((), INT32)
_MARKS = Aval((ROWS,), INT32)


def _rows(avals: Sequence[Aval]) -> list[Aval]:
    """Rows for carries of these shapes, and one more, for what is not kept."""
    return [Aval((ROWS + 1, *a.shape), a.dtype) for a in avals]


def _int(builder: Builder, value: int) -> Symbol:
    return builder.constant(np.int32(value))


def _inputs(builder: Builder, name: str, avals: Sequence[Aval]) -> list[Symbol]:
    return [builder.input(f"{name}_{k}", aval) for k, aval in enumerate(avals)]


def _graph(builder: Builder, name: str, results: Sequence[Any]) -> Graph:
    return builder.graph(name, tuple(Ref(s.id) for s in results))


def _while(builder: Builder, node: Node, cotangents: Mapping[int, Symbol], wanted: Collection[int]) -> Shares:
    node = builder.nodes[node.id]  # perhaps extended by now
    body, consts = node.params["body"], node.params["consts"]
    carries = len(body.inputs) - consts
    active = active_carries(body, consts, carries, cotangents.keys(), wanted)
    summed = [k for k in sorted(wanted) if k < consts and any(body.paths[j] >> k & 1 for j in active)]
    steps, shift, marks, rows = _extend(builder, node)

    avals = body.input_avals()
    fixed, moving = avals[:consts], avals[consts:]
    backward = _backward_step(body, consts, active, summed)
    F = builder.language
    last = F.sub(steps, _int(builder, 1))
    old = [cotangents[k] if k in cotangents else zeros(builder, moving[k]) for k in active]
    carry = [last, *old, *(zeros(builder, avals[k]) for k in summed), _int(builder, -1),
             *(zeros(builder, a) for a in _rows(moving))]  # fmt: skip
    outer = [*(builder.symbol(i) for i in node.inputs[:consts]), steps, shift, marks, *rows]

    test = Builder()
    _inputs(test, "const", [*fixed, _COUNT, _COUNT, _MARKS, *_rows(moving)])
    at = _inputs(test, "carry", [s.aval for s in carry])[0]
    going = _graph(test, "going", [at >= _int(test, 0)])
    found = emit(builder, WHILE, [*outer, *carry], condition=going, body=backward, consts=len(outer))
    positions = [*(consts + k for k in active), *summed]
    return [(k, s) for k, s in zip(positions, found[1:], strict=False) if k in wanted]


def _extend(builder: Builder, node: Node) -> tuple[Symbol, Symbol, Symbol, list[Symbol]]:
    """Let while loop `node` of `builder` keep checkpoints: (steps, shift, step number of each row, rows of each carry).

    The node keeps its id and its results: the new ones come after them.
    """
    body, condition, consts = node.params["body"], node.params["condition"], node.params["consts"]
    fixed, moving = body.input_avals()[:consts], body.input_avals()[consts:]
    added = [_COUNT, _COUNT, _MARKS, *_rows(moving)]

    test = Builder()
    operands = [*_inputs(test, "const", fixed), *_inputs(test, "carry", moving)]
    _inputs(test, "kept", added)
    going = _graph(test, condition.name, inline(test, condition, operands))

    b = Builder()
    operands = [*_inputs(b, "const", fixed), *_inputs(b, "carry", moving)]
    at, shift, marks, *rows = _inputs(b, "kept", added)
    F, one = b.language, _int(b, 1)

    def off(numbers: Symbol, shift: Symbol) -> Symbol:
        return numbers & (F.bitwise_left_shift(one, shift) - one)

    def free(shift: Symbol) -> Symbol:
        return F.logical_or(marks < _int(b, 0), off(marks, shift) > _int(b, 0))

    due = F.eq(off(at, shift), _int(b, 0))
    full = F.logical_not(F.any(free(shift), axis=(0,), keepdims=False))
    shift = F.where(F.logical_and(due, full), shift + one, shift)
    due = F.eq(off(at, shift), _int(b, 0))
    vacant = F.cast(F.argmax(F.cast(free(shift), dtype=INT32), axis=0, keepdims=False), dtype=INT32)
    row = F.where(due, vacant, _int(b, ROWS))
    marks = F.where(due, F.with_row(marks, at, row), marks)
    kept = [F.with_row(r, x, row) for r, x in zip(rows, operands[consts:], strict=True)]
    results = inline(b, body, operands)
    step = _graph(b, body.name, [*results, at + one, shift, marks, *kept])

    start = [_int(builder, 0), _int(builder, 0), builder.language.full(shape=(ROWS,), value=-1, dtype=INT32),
             *(zeros(builder, a) for a in _rows(moving))]  # fmt: skip
    _put_before(builder, node.id, start)
    params = {"condition": going, "body": step, "consts": consts}
    inputs = (*node.inputs, *(s.id for s in start))
    results = (*node.results, *added)
    builder.nodes[node.id] = Node(node.id, node.op, inputs, params, results, node.where, node.scope)
    first = len(node.results)
    steps, shift, marks, *rows = (
        builder.item(node.id, first + k) for k in range(len(added))
    )  # fmt: skip
    return steps, shift, marks, rows


def _put_before(builder: Builder, id: int, operands: Sequence[Symbol]) -> None:
    """Move `operands`, which have no operands themselves, to before node `id`."""
    moved = {s.id: builder.nodes[s.id] for s in operands}
    ordered: dict[int, Node] = {}
    for i, n in builder.nodes.items():
        if i == id:
            ordered |= moved
        ordered.setdefault(i, n)
    builder.nodes = ordered


def _backward_step(body: Graph, consts: int, active: list[int], summed: list[int]) -> Graph:
    """One step backward. Constants: those of the loop, steps, shift, marks, rows. Carries: the number of the step,
    cotangents of the active carries, sums for constants, the first step of the stretch in the rows that follow."""
    avals = body.input_avals()
    fixed, moving = avals[:consts], avals[consts:]
    b = Builder()
    outer = _inputs(b, "const", fixed)
    steps, shift, marks, *rows = _inputs(b, "kept", [_COUNT, _COUNT, _MARKS, *_rows(moving)])
    at = b.input("step", _COUNT)
    cts = _inputs(b, "ct", [moving[k] for k in active])
    sums = _inputs(b, "sum", [avals[k] for k in summed])
    stretch, *near = [b.input("stretch", _COUNT), *_inputs(b, "near", _rows(moving))]
    F, one = b.language, _int(b, 1)

    length = F.bitwise_left_shift(one, shift)
    offset = at & (length - one)
    first = at - offset
    # every 2**fine steps of the stretch are kept
    fine = F.maximum(shift - _int(b, LOG_ROWS), _int(b, 0))
    same = F.cast(F.eq(marks, first), dtype=INT32)
    row = F.cast(F.argmax(same, axis=0, keepdims=False), dtype=INT32)
    start = [F.row(r, row) for r in rows]
    # nothing to do if the stretch is the one of the step before: the loop starts at its end
    end = F.minimum(length, steps - first)
    begin = F.where(F.eq(stretch, first), end, _int(b, 0))
    filled = emit(
        b, WHILE, [*outer, end, fine, begin, *start, *near], consts=consts + 2,
        condition=_before(fixed, [_COUNT, *moving, *_rows(moving)]), body=_counting(body, consts, keeps=True),
    )  # fmt: skip
    near = filled[1 + len(moving) :]
    number = F.bitwise_right_shift(offset, fine)
    start = [F.row(r, number) for r in near]
    begin = F.bitwise_left_shift(number, fine)
    replayed = emit(
        b, WHILE, [*outer, offset, fine, begin, *start], consts=consts + 2,
        condition=_before(fixed, [_COUNT, *moving]), body=_counting(body, consts, keeps=False),
    )  # fmt: skip
    carry = replayed[1:]
    gradient = pulled_graph(body, active, [*(consts + k for k in active), *summed])
    shares = inline(b, gradient, [*outer, *carry, *cts])
    totals = [old + d for old, d in zip(sums, shares[len(active) :], strict=True)]
    return _graph(b, f"{body.name}_gradient", [at - one, *shares[: len(active)], *totals, first, *near])


def _before(fixed: Sequence[Aval], carry: Sequence[Aval]) -> Graph:
    """The condition of a loop with constants (*fixed, end, fine), whose first carry counts up to `end`."""
    b = Builder()
    *_, end, _ = _inputs(b, "const", [*fixed, _COUNT, _COUNT])
    at = _inputs(b, "carry", carry)[0]
    return _graph(b, "before", [at < end])


def _counting(body: Graph, consts: int, keeps: bool) -> Graph:
    """A step of the loop that counts, and perhaps keeps every 2**fine-th carry."""
    avals = body.input_avals()
    fixed, moving = avals[:consts], avals[consts:]
    b = Builder()
    *outer, _, fine = _inputs(b, "const", [*fixed, _COUNT, _COUNT])
    at, *carry = _inputs(b, "carry", [_COUNT, *moving])
    kept = _inputs(b, "kept", _rows(moving)) if keeps else []
    F, one = b.language, _int(b, 1)
    if keeps:
        due = F.eq(at & (F.bitwise_left_shift(one, fine) - one), _int(b, 0))
        row = F.where(due, F.bitwise_right_shift(at, fine), _int(b, ROWS))
        kept = [F.with_row(r, x, row) for r, x in zip(kept, carry, strict=True)]
    return _graph(b, body.name, [at + one, *inline(b, body, [*outer, *carry]), *kept])


STRUCTURED[WHILE] = _while
