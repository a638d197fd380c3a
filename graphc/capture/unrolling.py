"""Bounds on what one trace unrolls: a Python loop that the values of tensors keep going ends, whatever they are.

All are bounds on work, in operations recorded; none asks a clock.
"""

from __future__ import annotations

from typing import NamedTuple, final

from graphc import errors
from graphc.capture.location import user_line
from graphc.ir import Builder

ROUNDS = 256  # of a loop that asks the values of tensors whether to go on
FEW_ROUNDS = 16  # these may be as long as they like
UNROLLED = 8_192  # operations in the rounds of such a loop, after the first few
ALIKE = 1_024  # decisions at one line that are none on another, while something is computed that long a way
LONG = 256  # integers from here on may be numbers of rounds that are too many
DEEP = 4_096  # operations, each on the result of another, after such an integer has been read
WIDE = 25_000  # operations altogether after it
LARGEST = 100_000  # operations of any trace
STRIDE = 1_024  # operations between two looks


class _Loop(NamedTuple):
    """Decisions at one line, each on what has been computed since that before it from what was computed before that.

    first       what the first was asked after
    before, last  what the latest two were asked after: ids of nodes
    times, start  of all decisions at the line: how many, and what the first was asked after
    """

    rounds: int
    first: int
    before: int
    last: int
    times: int
    start: int


@final
class Unrolling:
    """The loops of one trace. `next`: the id of the node at which `look` wants to be called."""

    def __init__(self, builder: Builder):
        self._builder = builder
        self._loops: dict[str, _Loop] = {}
        self._integer: tuple[int, int, str] | None = None  # the first long one: where in the trace, its value, its line
        self.next = STRIDE

    def decided(self, id: int, where: str, value: object) -> None:
        """Note that Python has asked for the value of node `id`. Raises UnrolledError."""
        now = self._builder.next_id
        if type(value) is int and value >= LONG and self._integer is None:
            self._integer = now, value, where
        known = self._loops.get(where)
        times, start = (1, now) if known is None else (known.times + 1, known.start)
        if known is None or not self._carried(id, known):
            self._loops[where] = _Loop(1, now, now, now, times, start)
            # a counter of Python's: the decisions are on one number each, and what the rounds compute is a long way
            if times > ALIKE and times % LONG == 1 and self._depth(start) >= times:
                raise self._error(errors.UNROLLED.format(rounds=times, nodes=now - start, where=where))
            return
        loop = self._loops[where] = _Loop(known.rounds + 1, known.first, known.last, now, times, start)
        nodes = now - loop.first
        if loop.rounds > ROUNDS or (loop.rounds > FEW_ROUNDS and nodes > UNROLLED):
            raise self._error(errors.UNROLLED.format(rounds=loop.rounds, nodes=nodes, where=where))

    def _carried(self, id: int, loop: _Loop) -> bool:
        """Whether node `id` is made of what the round before has made; that all decide alike (`isfinite`) is none."""
        nodes, seen, stack = self._builder.nodes, set[int](), [id]
        first_round = loop.before == loop.last
        while stack:
            i = stack.pop()
            if i in seen or i < loop.before:
                continue
            seen.add(i)
            if i < loop.last and not first_round:
                return True
            stack.extend(nodes[i].inputs)
        # of the second decision nothing is known yet but that something has happened since the first
        return first_round and any(i >= loop.last for i in seen)

    def look(self) -> None:
        """Raise UnrolledError if the trace has become too large."""
        nodes, self.next = self._builder.next_id, self._builder.next_id + STRIDE
        if nodes > LARGEST:
            raise self._error(errors.ENDLESS.format(nodes=nodes, where=user_line()))
        if self._integer is None:
            return
        first, value, where = self._integer
        if nodes - first > WIDE or (nodes - first > DEEP and self._depth(first) > DEEP):
            raise self._error(errors.UNROLLED_BY_NUMBER.format(value=value, nodes=nodes - first, where=where))

    def _depth(self, first: int) -> int:
        """How many of the nodes from id `first` on are computed one from another, at most."""
        depths: dict[int, int] = {}
        for id in range(first, self._builder.next_id):
            node = self._builder.nodes.get(id)
            if node is not None:
                depths[id] = 1 + max([depths.get(i, 0) for i in node.inputs], default=0)
        return max(depths.values(), default=0)

    def _error(self, message: str) -> errors.UnrolledError:
        return errors.UnrolledError(message, self._builder.next_id)
