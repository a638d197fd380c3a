"""Checks that a call makes on NumPy before its program runs: of integers that it is given, or that follow from those.

Whether labels and indices lie in range is known as soon as they are. Asked inside the program it costs one more result,
for which the call waits, and donated state has to be put back if it fails: a training step takes XLA a tenth longer to
compile then, and some hundredths longer to run. Only exact arithmetic is done here, that of integers and bools.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from graphc.capture.generated import Names, indented
from graphc.ir import INPUT, Graph, Node
from graphc.ir.graph import Range
from graphc.ops.interpret import run_kernel
from graphc.ops.spec import Trait

MOST_ELEMENTS = 1 << 16  # in all arrays that one check takes: about 0.1 ms
MOST_NODES = 16


class Question(NamedTuple):
    """A check: the node whose check it is, and the ranges asked for, or None for its test on the node's operands."""

    node: Node
    ranges: tuple[Range, ...] | None

    @property
    def reads(self) -> set[int]:
        """The ids of the nodes whose values it is about."""
        return set(self.node.inputs) if self.ranges is None else {r.id for r in self.ranges}


class Prechecks(NamedTuple):
    """What to compute and to ask.

    steps    nodes to compute, and questions, in the order of the program
    settled  ids of the nodes whose checks these are: the program need not make them
    """

    steps: tuple[Node | Question, ...]
    settled: frozenset[int]

    def lines(self, arrays: Mapping[int, str], data: Mapping[int, str], names: Names, miss: str) -> list[str]:
        """Statements that do `miss` if a check fails.

        arrays  the expressions of the inputs' arrays, by id
        data    those of the data of their tensors. What has been asked of the same results of programs, to which nobody
                writes, is known: of a data set, after its first epoch
        """
        lines, inputs = self._asked(arrays, names, miss)
        if not inputs or not data.keys() >= set(inputs):
            return lines
        seen: list[Callable[[], Any]] = [_nothing] * len(inputs)
        known, read = names.of(seen), [arrays[id] for id in inputs]
        stays = " and ".join(f"{data[id]}.__class__ is Deferred" for id in inputs)
        now = ", ".join(f"{names.of(weakref.ref)}({x})" for x in read)
        return [
            f" if {' or '.join(f'{known}[{k}]() is not {x}' for k, x in enumerate(read))}:",
            *indented(lines),
            f"  if {stays}: {known}[:] = {now},",
        ]

    def _asked(self, arrays: Mapping[int, str], names: Names, miss: str) -> tuple[list[str], list[int]]:
        """These statements, without memory of earlier ones, and the ids of the inputs that they read."""
        found: list[str] = []
        known: dict[int, str] = {}
        inputs: list[int] = []
        least, largest = names.of(np.minimum.reduce), names.of(np.maximum.reduce)  # without the Python of methods

        def value(id: int) -> str:
            if id not in known:
                known[id] = f"h{id}"
                inputs.append(id)
                found.append(f" h{id} = asarray({arrays[id]})")
            return known[id]

        for step in self.steps:
            if isinstance(step, Node):
                known[step.id] = _computed(step, [value(i) for i in step.inputs], names, found)
            elif step.ranges is None:
                check = step.node.check
                assert check is not None
                operands = ", ".join(value(i) for i in step.node.inputs)
                ok, params = names.of(check.ok), names.of(dict(step.node.params))
                found.append(f" if not {ok}({names.of(np)}, {operands}, **{params}): {miss}")
            else:
                for id, low, high in step.ranges:
                    h = value(id)
                    found.append(f" if {least}({h}, None) < {low} or {largest}({h}, None) >= {high}: {miss}")
        return found, inputs


NONE = Prechecks((), frozenset())


def _nothing() -> None:
    """What a weak reference to nothing returns."""


def _computed(node: Node, operands: list[str], names: Names, lines: list[str]) -> str:
    """The expression of the value of `node`, which `lines` compute."""
    if not operands:  # a constant
        return names.of(run_kernel(node.op, [], node.params))
    params = f", **{names.of(dict(node.params))}" if node.params else ""
    lines.append(f" h{node.id} = {names.of(node.op.kernel)}({', '.join(operands)}{params})")
    return f"h{node.id}"


def prechecks(graph: Graph, given: Collection[int]) -> Prechecks:
    """The checks of `graph` that can be made on the values of the inputs `given`, by id, alone."""
    effort: dict[int, tuple[int, int]] = {}  # of what can be computed here: the nodes, and elements, that it takes
    questions: dict[int, Question] = {}
    asked: set[Range] = set()
    for node in graph.nodes.values():
        question = _question(graph, node)
        if question is not None and _always_holds(graph, question):
            questions[node.id] = Question(node, ())
        elif question is not None and effort.keys() >= question.reads:
            new = question.ranges and tuple(r for r in question.ranges if not _implied(graph, r, asked))
            asked.update(new or ())
            questions[node.id] = Question(node, new)
        elif node.check is not None:
            continue
        if (node.id in given if node.op is INPUT else _exact(graph, node)) and effort.keys() >= set(node.inputs):
            nodes = 1 + sum(effort[i][0] for i in node.inputs)
            elements = math.prod(node.shape) + sum(effort[i][1] for i in node.inputs)
            if nodes <= MOST_NODES and elements <= MOST_ELEMENTS:
                effort[node.id] = nodes, elements
    steps: list[Node | Question] = []
    needed: set[int] = set()
    for node in reversed(list(graph.nodes.values())):
        if node.id in needed and node.op is not INPUT:
            steps.append(node)
            needed.update(node.inputs)
        if (question := questions.get(node.id)) is not None:
            steps.append(question)
            needed |= question.reads
    return Prechecks(tuple(reversed(steps)), frozenset(questions))


def _question(graph: Graph, node: Node) -> Question | None:
    """The check of `node`, unless it asks for anything but integers and bools."""
    ranges = graph.ranges(node)
    if ranges is not None:
        return Question(node, tuple(r for r in ranges if 0 not in graph.nodes[r.id].shape))
    exact = node.check is not None and all(_integral(graph.nodes[i]) for i in node.inputs)
    return Question(node, None) if exact else None


def _always_holds(graph: Graph, question: Question) -> bool:
    """Whether a check is about constants, as of a divisor, and holds."""
    node, check = question.node, question.node.check
    if check is None or check.about is None or question.ranges is not None:
        return False
    operands = [graph.nodes[i] if k in check.about else None for k, i in enumerate(node.inputs)]
    if not all(map(_is_known, operands)):
        return False
    values = [None if x is None else run_kernel(x.op, [], x.params) for x in operands]
    return bool(check.ok(np, *values, **node.params))


def _is_known(operand: Node | None) -> bool:
    return operand is None or (bool(operand.op.traits & Trait.LITERAL) and not operand.inputs)


def _implied(graph: Graph, wanted: Range, asked: set[Range]) -> bool:
    """Whether the integers lie in a range because those do, by what is `asked` before, that they are taken from."""
    id, moved = wanted.id, False
    while True:
        for known in asked:
            low, high = known.low, known.high
            if moved:  # up to the sign, or 0
                low, high = min(low, 1 - high, 0), max(high, 1 - low, 1)
            if known.id == id and wanted.low <= low and high <= wanted.high:
                return True
        node = graph.nodes[id]
        if not node.op.moves or len(node.inputs) != 1 or not _exact(graph, node):
            return False
        (id,), moved = node.inputs, True


def _exact(graph: Graph, node: Node) -> bool:
    """Whether NumPy's value of `node` is XLA's, whatever the operands are."""
    op = node.op
    alike = all(_integral(graph.nodes[i]) for i in (node.id, *node.inputs))
    return alike and not (op.impure or op.several or op.structured)


def _integral(node: Node) -> bool:
    return all(aval.dtype.kind in "iub" for aval in node.results)
