"""Graphs as programs: each node is a statement, and the graphs inside control flow are functions inside the program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from textwrap import indent
from typing import Any, final

import numpy as np

from compare.cases.case import Case
from compare.fuzzing.program import Input, Program, literal, names
from compare.minimizing.statements import MinimizeError, live, statement
from graphc.capture import Argument, Captured, GradOf
from graphc.capture.sources import Effect
from graphc.ir import INPUT, Graph, Node
from graphc.ir.structure import ITEM, SCAN, SWITCH, WHILE
from graphc.ops import OPS
from graphc.ops.dtypes import is_inexact

_CONSTANT = OPS["constant"]
_SHORT = 8  # elements of a constant that is written where it is used


def program_of(case: Case) -> Program:
    """The captured graph of a case as a program on its inputs. Raises MinimizeError."""
    if case.program is None:
        raise MinimizeError(f"{case.name}: the program cannot be captured") from case.failure
    graph = case.program.graph
    with case.preserved():
        arrays = case.arrays(laid=True)
    wanted = {id(i.tensor) for i in case.wrt}
    leaves = {node for i in case.inputs if id(i.tensor) in wanted for node in case.input_ids(i)}
    writer = _Writer(leaves | case.program.recorded.nodes if leaves else None)
    known = {place: f"x{k}" for k, place in enumerate(graph.inputs)}
    inputs = [Input.of(known[place], a, place in leaves) for place, a in zip(graph.inputs, arrays, strict=True)]
    lines = writer.block(graph, known)
    results = list(map(known.__getitem__, graph.outputs))
    sources = dict(zip(case.program.sources, graph.inputs, strict=True))
    lines += [_effect(e, known, sources) for e in case.program.effects.tensors if e.id is not None]
    inputs += writer.inputs
    program = Program(graph.name, inputs, [statement(line) for line in lines if line], results)
    return live(program, list(dict.fromkeys(r for r in results if r.isidentifier())))


def _effect(effect: Effect, known: Mapping[int, str], sources: Mapping[Any, int]) -> str:
    """The statement that does what the program does to one of its inputs; "" if there is none."""
    value, target = known[effect.id or 0], effect.target
    if isinstance(target, (Argument, Captured)) and target in sources:
        return f"with torch.no_grad():\n    {known[sources[target]]}.copy_({value})"
    if isinstance(target, GradOf) and target.of in sources:
        return f"{known[sources[target.of]]}.grad = {value}.detach()"
    return ""


@final
class _Writer:
    """Writes the nodes of a graph, and of those inside it, under names that are all different.

    recorded  nodes that gradients flow through; None: it does not matter
    inputs    constants that are too large to be written where they are used
    """

    def __init__(self, recorded: set[int] | frozenset[int] | None):
        self.recorded = recorded
        self.inputs: list[Input] = []
        self._numbers = itertools.count(1)

    def _fresh(self, prefix: str) -> str:
        return f"{prefix}{next(self._numbers)}"

    def block(self, graph: Graph, known: dict[int, str], outermost: bool = True) -> list[str]:
        """A statement for each node. `known`: the names of nodes, to begin with those of the inputs; added to."""
        lines: list[str] = []
        for node in graph.nodes.values():
            if node.op is INPUT or node.op is ITEM or node.id in known:
                continue
            reads = [known[i] for i in node.inputs]
            if node.op is _CONSTANT:
                known[node.id] = self._constant(node.params["value"].array)
            elif node.op.structured:
                lines += self._structured(node, graph, known, reads)
            else:
                known[node.id] = self._fresh("v")
                end = ".detach()" if outermost and self._stops(node) else ""
                lines.append(f"{known[node.id]} = {call_of(node, reads)}{end}")
        return lines

    def _stops(self, node: Node) -> bool:
        if self.recorded is None or node.id in self.recorded or not is_inexact(node.dtype):
            return False
        return node.op.differentiable and any(i in self.recorded for i in node.inputs)

    def _constant(self, array: np.ndarray) -> str:
        if array.size <= _SHORT and (text := _exact(array)) is not None:
            return text
        name = self._fresh("x_")
        self.inputs.append(Input(name, array, False))
        return name

    def _structured(self, node: Node, graph: Graph, known: dict[int, str], reads: list[str]) -> list[str]:
        if node.op not in _FORMS:
            raise MinimizeError(f"{graph.name}: there is no way to write '{node.op.name}' at {node.where}")
        results = [self._fresh("v") for _ in node.results]
        for item in graph.nodes.values():
            if item.op is ITEM and item.inputs[0] == node.id:
                known[item.id] = results[item.params["index"]]
        return _FORMS[node.op](self, node, reads, results)

    def function(
        self, graph: Graph, fixed: Sequence[str], parts: Sequence[int], returned: Callable[[list[str]], str]
    ) -> tuple[str, str]:
        """(name, text) of a function that runs `graph`.

        fixed     what the first inputs are called around it
        parts     the other inputs, so many in each parameter: one by itself, several as a tuple, None if 0
        returned  the expression of what it returns, of its results
        """
        known = dict(zip(graph.inputs, fixed, strict=False))
        rest = [(id, self._fresh("a")) for id in graph.inputs[len(fixed) :]]
        known.update(rest)
        own = iter([name for _, name in rest])
        name, parameters, lines = self._fresh("f"), list[str](), list[str]()
        for count in parts:
            taken = list(itertools.islice(own, count))
            parameters.append(taken[0] if count == 1 else self._fresh("p"))
            if count > 1:
                lines.append(f"{nest(taken)} = {parameters[-1]}")
        lines += self.block(graph, known, outermost=False)
        lines.append(f"return {returned([known[id] for id in graph.outputs])}")
        return name, f"def {name}({', '.join(parameters)}):\n{indent(chr(10).join(lines), '    ')}"

    def switch(self, node: Node, reads: list[str], results: list[str]) -> list[str]:
        branches = node.params["branches"]
        made = [self.function(b, (), [1] * (len(reads) - 1), nest) for b in branches]
        called = f"graphc.switch({reads[0]}, ({', '.join(name for name, _ in made)},), {', '.join(reads[1:])})"
        return [*(text for _, text in made), f"{nest(results)} = {called}"]

    def while_loop(self, node: Node, reads: list[str], results: list[str]) -> list[str]:
        fixed, carry = reads[: node.params["consts"]], reads[node.params["consts"] :]
        test, test_text = self.function(node.params["condition"], fixed, [len(carry)], nest)
        body, body_text = self.function(node.params["body"], fixed, [len(carry)], nest)
        return [test_text, body_text, f"{nest(results)} = graphc.while_loop({test}, {body}, {nest(carry)})"]

    def scan(self, node: Node, reads: list[str], results: list[str]) -> list[str]:
        params = node.params
        consts, carries = params["consts"], params["carries"]
        fixed, carry, xs = reads[:consts], reads[consts : consts + carries], reads[consts + carries :]
        body, text = self.function(
            params["body"], fixed, [carries, len(xs)], lambda r: f"{nest(r[:carries])}, {nest(r[carries:])}"
        )
        options = f"length={params['length']}" + (", reverse=True" if params["reverse"] else "")
        pair = [nest(part) if part else "_" for part in (results[:carries], results[carries:])]
        return [text, f"{', '.join(pair)} = graphc.scan({body}, {nest(carry)}, {nest(xs)}, {options})"]


_FORMS: Mapping[Any, Callable[[_Writer, Node, list[str], list[str]], list[str]]] = {
    SWITCH: _Writer.switch,
    WHILE: _Writer.while_loop,
    SCAN: _Writer.scan,
}


def nest(parts: Sequence[str]) -> str:
    """One by itself, several as a tuple, nothing as None."""
    return "None" if not parts else parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def call_of(node: Node, reads: Sequence[str]) -> str:
    """The call of a node's op. Raises MinimizeError if a parameter has no text."""
    params = [f"{name}={literal(value)}" for name, value in node.params.items()]
    text = f"E.{node.op.name}({', '.join([*reads, *params])})"
    for name, value in node.params.items():
        try:
            same = type(eval(literal(value), names())) is type(value)
        except (SyntaxError, NameError, TypeError, ValueError):
            same = False
        if not same:
            raise MinimizeError(f"the parameter '{name}' of '{node.op.name}' at {node.where} has no text: {value!r}")
    return text


def _exact(array: np.ndarray) -> str | None:
    """A call of torch.tensor that makes the array to the bit, or None."""
    if array.dtype.kind not in "fib":
        return None
    values = array.tolist() if array.shape else literal(array.item())
    text = f"torch.tensor({values}, dtype=torch.{array.dtype.name})"
    try:
        made = eval(text, names())._array()
    except (NameError, AttributeError):  # nan in a list, a dtype of another name
        return None
    return text if made.shape == array.shape and made.tobytes() == array.tobytes() else None
