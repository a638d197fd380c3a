"""A graph as the source of a NumPy function: each node is a line or two, in memory that was planned ahead.

Results are arrays of their own, row-major: never the program's memory, an argument's, or that of another result.
"""

from __future__ import annotations

import itertools
import linecache
import math
import re
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from graphc.ir.graph import Graph, Node
from graphc.ir.structure import bodies, every_node
from graphc.ir.text import names_of
from graphc.lowering.host.buffer_planning import MOST_KEPT, Plan, last_uses
from graphc.lowering.host.forms import Form, form_of
from graphc.ops.control import BodyProxy
from graphc.ops.dtypes import is_half
from graphc.ops.interpret import run_kernel, widens

CHECKS_INSIDE = "NumPy would run {name} with run-time checks inside it (at {where})"
_numbers = itertools.count(1)
_OURS = re.compile(r"[bkp]\d+|c_.*|op_.*|ok_.*|[^_].*_reduce.*|np|run|own|fail|memory|pool|make")
_LARGE = 1 << 10  # elements of a value, from which on it is dropped as soon as nobody reads it any more
_C = ', order="C"'


def unsuitable(graph: Graph) -> str:
    """Why `graph` cannot be lowered to NumPy; "" if it can."""
    for node in graph.operations():
        if node.op.structured and any(n.check is not None for body in bodies(node) for n in every_node(body)):
            return CHECKS_INSIDE.format(name=node.op.name, where=node.where or "an unknown line")
    return ""


class _Step(NamedTuple):
    """A node, how it is written (None: by its kernel), and the values that must live while its own does."""

    node: Node
    form: Form | None
    roots: frozenset[int]


def own(value: np.ndarray, *others: Any) -> np.ndarray:
    """`value`, or a copy: unless it is all of its memory, row-major, and not one of the `others`."""
    flags = value.flags
    if value.base is None and flags.c_contiguous and flags.writeable:
        for other in others:
            if value is other:
                break
        else:
            return value
    return np.array(value, order="C")


class HostSource:
    """The `text` of a NumPy function, and in `scope` what its names stand for.

    settled  ids of nodes whose checks are made elsewhere
    fail     f(node, arrays): raises what it means that the check of a node has failed; `arrays`: the arguments
    """

    def __init__(self, graph: Graph, settled: Collection[int] = (), fail: Callable[..., NoReturn] | None = None):
        self.graph = graph
        self._settled = settled
        self.checked = [n for n in graph.operations() if n.check is not None and n.id not in settled]
        self.scope: dict[str, Any] = {
            "__name__": "graphc.host_program", "asarray": np.asarray, "empty": np.empty, "fail": fail, "np": np,
            "own": own, "run": run_kernel,
        }  # fmt: skip
        self._names = names_of(graph, _taken)
        self._function = f"{graph.name}_" if _taken(graph.name) else graph.name
        self._reserved = {self._function, *self._names.values()}
        self._constants: set[int] = set()
        self._plan = Plan()
        self._lines: list[str] = []
        self.text = self._write()

    def function(self) -> Callable[..., tuple[np.ndarray, ...]]:
        """The function that the text defines."""
        filename = f"<numpy program {self.graph.name} {next(_numbers)}>"
        exec(compile(self.text, filename, "exec"), self.scope)
        function = self.scope[self._function]
        linecache.cache[filename] = (len(self.text), None, self.text.splitlines(keepends=True), filename)
        weakref.finalize(function, linecache.cache.pop, filename, None)
        return function

    def _write(self) -> str:
        graph, names = self.graph, self._names
        steps = self._steps()
        reads = [[*self._read_by(step)] for step in steps]
        last = last_uses(reads)
        escaping = {root for id in graph.outputs for root in self._roots[id]}
        foreign = self._constants.union(graph.inputs)
        places: dict[int, int] = {}  # value -> number of its place
        self._row_major = {id for id in graph.nodes if id in self._constants}
        for k, step in enumerate(steps):
            self._check(step.node)
            done = [root for root in dict.fromkeys(reads[k]) if last[root] == k]
            self._compute(step, escaping, places, done)
            for root in done:
                if root in places:
                    if places[root] >= 0:
                        self._plan.put_back(places[root])
                elif root not in escaping and root not in foreign and graph.nodes[root].size >= _LARGE:
                    self._lines.append(f"del {names[root]}")
            if step.node.id in places and step.node.id not in last:  # nobody reads it
                self._plan.put_back(places[step.node.id])
        result = self._results()
        head = f"def {self._function}({', '.join(names[id] for id in graph.inputs)}):"
        body = [*self._memory_taken(), *self._lines, *result]
        return "\n    ".join([head, *body]) + "\n"

    def _steps(self) -> list[_Step]:
        """The nodes to compute, with what each value's memory depends on. Constants are computed here."""
        graph = self.graph
        self._roots: dict[int, frozenset[int]] = {id: frozenset((id,)) for id in graph.inputs}
        steps: list[_Step] = []
        for node in graph.operations():
            if not node.inputs and not node.op.impure and not node.op.structured and not node.op.several:
                self._bind_constant(node)
                continue
            form = self._form(node)
            below = frozenset[int]().union(*(self._roots[i] for i in node.inputs))
            own_one = frozenset((node.id,))
            roots = own_one if form is not None and not form.view else below if form is not None else own_one | below
            self._roots[node.id] = roots
            steps.append(_Step(node, form, roots))
        self._repeat_lazily(steps)
        return steps

    def _repeat_lazily(self, steps: list[_Step]) -> None:
        """Let those who read a repeated value read what is repeated, where NumPy repeats it by itself."""
        users = self.graph.users()
        forms = {step.node.id: step.form for step in steps}
        nodes, repeated = self.graph.nodes, set[int]()
        for k, step in enumerate(steps):
            id = step.node.id
            if step.form is None or not step.form.repeats or id in self.graph.outputs or not users[id]:
                continue

            def by_itself(user: int, id: int = id) -> bool:
                form, whole = forms.get(user), [i for i in nodes[user].inputs if i != id and i not in repeated]
                return (
                    form is not None and form.each and not form.repeats
                    and any(nodes[i].shape == nodes[user].shape for i in whole)
                )  # fmt: skip

            if all(map(by_itself, users[id])):
                repeated.add(id)
                operand = step.node.inputs[0]
                self._roots[id] = self._roots[operand]
                steps[k] = _Step(step.node, Form(lambda out, i=operand: self._names[i], view=True), self._roots[id])

    def _bind_constant(self, node: Node) -> None:
        value = np.array(run_kernel(node.op, [], node.params), node.dtype, order="C")
        value.flags.writeable = False
        self.scope[f"k{node.id}"] = value
        self._names[node.id] = f"k{node.id}"
        self._constants.add(node.id)
        self._roots[node.id] = frozenset((node.id,))

    def _form(self, node: Node) -> Form | None:
        if node.op.structured or node.op.several or any(self.graph.nodes[i].op.several for i in node.inputs):
            return None
        if any(is_half(self.graph.nodes[i].dtype) for i in node.inputs) and widens(node.op):
            return None
        names, avals = [self._names[i] for i in node.inputs], [self.graph.nodes[i].aval for i in node.inputs]
        return form_of(node, names, avals, self._bind)

    def _read_by(self, step: _Step) -> set[int]:
        """The values whose memory the step reads."""
        return {root for i in step.node.inputs for root in self._roots[i]} - self._constants

    def _bind(self, stem: str, value: Any) -> str:
        name, suffix = stem, 1
        while name in self._reserved or (name in self.scope and not _same(self.scope[name], value)):
            suffix += 1
            name = f"{stem}_{suffix}"
        self.scope[name] = value
        return name

    def _compute(self, step: _Step, escaping: set[int], places: dict[int, int], done: list[int]) -> None:
        """Write the lines that compute a value: in planned memory if that does not leave the program."""
        node, form, name = step.node, step.form, self._names[step.node.id]
        where = f"  # {node.where}" if node.where else ""
        if form is None:
            self._lines.append(f"{name} = {self._by_kernel(node)}{where}")
            return
        if form.out and node.id not in escaping and (node.shape or not form.view):
            place = None
            if form.each:
                taken = [places[i] for i in node.inputs if i in done and i in places and places[i] >= 0]
                place = next((p for p in taken if self._plan.again(p, node.aval) is not None), None)
                for root in done if place is not None else ():
                    if places.get(root) == place:
                        places[root] = -1  # which gives its memory to this value
            places[node.id] = self._plan.take(node.aval) if place is None else place
            out = f"b{places[node.id]}"
            self._row_major.add(node.id)
            self._lines.append(f"{name} = {form.write(out)}{where}")
            return
        if form.needs_out:
            dtype = self._bind(node.dtype.name, node.dtype)
            self._lines += [f"{name} = empty({node.shape}, {dtype})", f"{form.write(name)}{where}"]
            self._row_major.add(node.id)
            return
        text = form.write("")
        if form.scalar and not node.shape:
            text = f"asarray({text})"
        if form.each:
            full = [i for i in node.inputs if len(self.graph.nodes[i].shape) > 1]
            if len(node.shape) > 1 and not self._row_major.issuperset(full):
                text = f"{text[:-1]}{_C})"
            self._row_major.add(node.id)
        self._lines.append(f"{name} = {text}{where}")

    def _by_kernel(self, node: Node) -> str:
        """The expression of a call of the op's kernel, as `run_kernel` makes it."""
        operands = ", ".join(self._names[i] for i in node.inputs)
        avals = [aval for i in node.inputs for aval in self.graph.nodes[i].results]
        general = node.op.structured or node.op.several or any(self.graph.nodes[i].op.several for i in node.inputs)
        if general or (widens(node.op) and any(is_half(a.dtype) for a in avals)):
            params = {name: self._lowered(value, node) for name, value in node.params.items()}
            op, params = self._bind(f"op_{node.op.name}", node.op), self._bind("p1", params)
            return f"run({op}, ({operands},), {params})"
        text = f"{self._bind(f'op_{node.op.name}', node.op.kernel)}({self._arguments(node, operands)})"
        return text if node.shape else f"asarray({text})"

    def _arguments(self, node: Node, operands: str) -> str:
        pairs = (f"{name}={_literal(value) or self._bind('p1', value)}" for name, value in node.params.items())
        return ", ".join(([operands] if operands else []) + list(pairs))

    def _lowered(self, value: Any, node: Node) -> Any:
        """A parameter, with functions in place of graphs."""
        if isinstance(value, tuple):
            return tuple(self._lowered(part, node) for part in value)
        return BodyProxy(value, HostSource(value).function()) if isinstance(value, Graph) else value

    def _check(self, node: Node) -> None:
        if node.check is None or node.id in self._settled:
            return
        ok, number = self._bind(f"ok_{node.op.name}", node.check.ok), self._bind("p1", node)
        operands = ", ".join(["np", *(self._names[i] for i in node.inputs)])
        inputs = "".join(f"{self._names[id]}, " for id in self.graph.inputs)
        self._lines.append(f"if not {ok}({self._arguments(node, operands)}): fail({number}, ({inputs}))")

    @property
    def memory(self) -> int:
        """Bytes of results, and of temporaries that are planned."""
        results = [a for id in set(self.graph.outputs) for a in self.graph.nodes[id].results]
        return self._plan.size + sum(a.size * a.dtype.itemsize for a in results)

    def _memory_taken(self) -> list[str]:
        if not self._plan.places:
            return []
        self.scope["pool"], self.scope["make"] = [], self._plan.maker()
        arrays = "".join(f"b{k}, " for k in range(len(self._plan.places)))
        return ["memory = pool.pop() if pool else make()", f"{arrays}= memory"]

    def _results(self) -> list[str]:
        """Return the results, each an array of its own."""
        expressions: list[str] = []
        given: dict[int, set[int]] = {}  # root -> the outputs that may lie in its memory
        foreign = self._constants.union(self.graph.inputs)
        for id in self.graph.outputs:
            node, roots, name = self.graph.nodes[id], self._roots[id], self._names[id]
            before = {other for root in roots for other in given.get(root, ())}
            if id in before or id in foreign:
                expressions.append(f"np.array({name}, order='C')")
                continue
            others = [*(root for root in roots if root in foreign), *before]
            fresh = id in self._row_major or (len(node.shape) < 2 and roots == {id})
            if others or not fresh:
                name = f"own({', '.join([name, *(self._names[i] for i in others)])})"
            expressions.append(name)
            for root in roots:
                given.setdefault(root, set()).add(id)
        result = f"({', '.join(expressions)}{',' if len(expressions) == 1 else ''})"
        if not self._plan.places:
            return [f"return {result}"]
        if self._plan.size > MOST_KEPT:
            return [f"return {result}"]
        return ["pool.append(memory)", f"return {result}"]


def _taken(name: str) -> bool:
    """Whether a name stands for something else in the source."""
    return _OURS.fullmatch(name) is not None or hasattr(np, name)


def _same(known: Any, value: Any) -> bool:
    """Whether a name may stand for both: one object, or numbers of the same bits."""
    if isinstance(known, np.ndarray) and isinstance(value, np.ndarray):
        return known is value or (known.dtype == value.dtype and known.tobytes() == value.tobytes())
    return known is value or (callable(known) and type(known) is type(value) and known == value)


def _literal(value: Any) -> str:
    """The expression of a parameter; "" for an object that needs a name."""
    if isinstance(value, tuple):
        parts: Sequence[str] = [_literal(part) for part in value]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})" if all(parts) else ""
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return repr(value)
    return ""
