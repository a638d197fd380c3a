"""A graph as the source of a JAX function.

Each node becomes one line: `v5 = lax.tanh(v4)`. Ops with a row in `graphc.lowering.primitives` are written in jax.lax;
of the others, those whose `impl` is a name call jax.numpy (or jax.scipy.special), and the rest `ops.<name>`, the op's
shared implementation on jax.numpy, or its override. A graph that a node runs is a function of its own, above the line.
"""

from __future__ import annotations

import functools
import itertools
import linecache
import re
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from types import CodeType, SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
from jax import lax

from graphc.errors import GraphError
from graphc.facts.passed import passed_range
from graphc.ir.graph import Graph, Node
from graphc.ir.structure import may_fail
from graphc.ir.text import names_of
from graphc.lowering import diagonals, factors
from graphc.lowering.constant_operands import of_numbers
from graphc.lowering.matrices import CHECKS
from graphc.lowering.overrides import COMPLEX, OVERRIDES
from graphc.lowering.pack_offsets import in_packs
from graphc.lowering.primitives import expression
from graphc.lowering.products import product
from graphc.lowering.substitutions import substitution
from graphc.lowering.zeros import held_numbers, inside, loses_zero, starts, unsigned
from graphc.ops import Literal, Op, Trait
from graphc.ops.dtypes import is_half
from graphc.ops.interpret import widens
from graphc.passes.settings import FACTORS, TRANSPOSED

_numbers = itertools.count(1)
# JAX asks for the line of each operation, which Python finds by counting from the start of the code: in code of 10,000
# lines that took seven times as long as lowering itself.
BLOCK = 100
_OTHERS = re.compile(
    r"k\d+|ok\d+|at_.*|fail_.*|factors_.*|failure|fine|float|complex"
)  # names of constants, factors, checks and what _value writes


def jax_kernel(op: Op, operands: Sequence[Any] = ()) -> tuple[str, Callable[..., Any]]:
    """How source calls `op` under JAX, and the function that the name stands for; operands: anything with a dtype."""
    if _of_complex(op, operands):
        return f"ops.complex_{op.name}", COMPLEX[op.name]
    if op.name in OVERRIDES:
        return f"ops.{op.name}", OVERRIDES[op.name]
    if isinstance(op.impl, str):
        if op.impl.startswith("special."):
            return op.impl, getattr(jax.scipy.special, op.impl.removeprefix("special."))
        return f"jnp.{op.impl}", getattr(jnp, op.impl)
    impl = op.impl

    def kernel(*arrays: Any, **params: Any) -> Any:
        return impl(jnp, *arrays, **params)

    return f"ops.{op.name}", kernel


def _of_complex(op: Op, operands: Sequence[Any]) -> bool:
    return op.name in COMPLEX and any(x.dtype.kind == "c" for x in operands)


def in_float32(op: Op, operands: Sequence[Any]) -> list[bool]:
    """For each operand (anything with a dtype) whether the kernel of `op` is to be given it in float32.

    XLA would round every step of a composed kernel to 16 bits, and has no factorizations of such matrices.
    """
    wide = widens(op) and not op.traits & Trait.CONTRACTS
    return [wide and is_half(x.dtype) for x in operands]


class Source:
    """The `text` of a JAX function, `plain` as well (without places), and in `scope` what its names stand for.

    outer   of a graph that a node of another runs: the source of that one, which has the scope and the list of checks
    failing whether the function also returns the number of the first check that failed; always, if it has checks
    restore output number -> input number: what the function returns there when a check fails
    settled ids of nodes whose checks are made elsewhere
    known   the number that an input holds in every place, or None, for each
    apart   whether places in packs are arguments, after the others, whose values are `places`: see `in_packs`
    without names of choices that are not made: see `graphc.mechanisms`
    """

    def __init__(
        self,
        graph: Graph,
        name: str | None = None,
        outer: Source | None = None,
        failing: bool = False,
        restore: Mapping[int, int] | None = None,
        settled: Collection[int] = (),
        known: Sequence[Any] = (),
        apart: bool = False,
        without: Collection[str] = (),
    ):
        self._without = without
        self.graph = graph
        self._held = held_numbers(graph, known)
        self._settled = settled
        self._restore = restore or {}
        self._function = name or graph.name
        self._failing = failing
        self._failures: dict[str, int | None] = {}  # names of checks, with their number, and of failure numbers
        self._within: dict[int, list[tuple[float, float]]] = {}  # ranges that values are checked to lie in
        self.checked: list[Node] = [] if outer is None else outer.checked
        self.scope: dict[str, Any] = outer.scope if outer is not None else {
            "jnp": jnp, "jax": jax, "lax": lax, "np": np, "special": jax.scipy.special, "ops": SimpleNamespace(),
            "checks": SimpleNamespace(), "first_failure": first_failure,
        }  # fmt: skip
        self._places = in_packs(graph) if apart else {}
        self.places = tuple(self._places.values())
        self._names = self._own_names()
        self._uses = graph.uses()
        self._factors: dict[int, str] = {}  # names of those of matrices
        self._statements: list[str] = []
        self._plain: list[str] = []  # the same without places
        self._result = ""
        self._defined: set[str] = set()
        self.text = self._write()

    def _own_names(self) -> dict[int, str]:
        """The names of the graph's values, apart from those that the source uses for other things."""
        names = names_of(self.graph)
        used = set(names.values())
        for id, name in names.items():
            while name in self.scope or _OTHERS.fullmatch(name):
                name = f"v_{name}"
                name = name if name not in used else f"{name}_{id}"
            names[id] = name
        return names

    def _write(self) -> str:
        graph, names = self.graph, self._names
        operations = list(graph.operations())
        checking = [k for k, node in enumerate(operations) if self._asks_anew(node) or self._checked_inside(node)]
        asked = {operations[k].id for k in checking}
        early = self._restored_early(operations[checking[-1] + 1 :]) if checking else {}
        for k, node in enumerate(operations):
            where = f"  # {node.where}" if node.where else ""
            result = names[node.id]
            if self._checked_inside(node):
                self._failures[f"fail_{result}"] = None
                result = f"*{result}, fail_{result}"
            self._state(f"{result} = {self._expression(node)}", where)
            if node.check is not None and node.id in asked:
                ok = f"ok{len(self.checked)}"
                self._state(f"{ok} = {self._asked(node)}")
                self._failures[ok] = len(self.checked)
                self.checked.append(node)
            if self._restore and checking and k == checking[-1]:
                self._state(f"failure = {self._first_failure()}")
                self._state("fine = failure < 0")
            if node.id in early:
                self._state(f"{result} = {self._kept(node.id, early[node.id])}")
        outputs = [names[id] for id in graph.outputs]
        if checking:
            for k, position in self._restore.items():
                if graph.outputs[k] not in early:
                    outputs[k] = self._kept(graph.outputs[k], position)
            outputs.append("failure" if self._restore else self._first_failure())
        elif self._failing:
            outputs.append("np.int32(-1)")
        self._result = f"({', '.join(outputs)}{',' if len(outputs) == 1 else ''})"
        head = f"def {self._function}({', '.join(self._parameters())}):"
        self.plain = "\n".join([head, *self._plain, self._result])
        lines = [line for statement in self._statements for line in statement.split("\n")]
        return "\n    ".join([head, *lines, f"return {self._result}"]) + "\n"

    def _parameters(self) -> list[str]:
        return [*(self._names[id] for id in self.graph.inputs), *(f"at_{self._names[id]}" for id in self._places)]

    def _state(self, statement: str, where: str = "") -> None:
        self._statements.append(f"{statement}{where}")
        self._plain.append(statement)

    def _asks_anew(self, node: Node) -> bool:
        """Whether `node` has a check that none of the nodes seen so far has made. Notes the ranges that it asks for."""
        if node.id in self._settled:
            return False
        ranges = self.graph.ranges(node)
        if ranges is None:
            return node.check is not None
        new = False
        for id, low, high in ranges:
            known = self._within.setdefault(id, [passed_range(id, self.graph.nodes)])
            if not any(low <= least and most <= high for least, most in known):
                known.append((low, high))
                new = True
        return new

    def _first_failure(self) -> str:
        return f"first_failure([{', '.join(self._failures)}], {list(self._failures.values())})"

    def _restored_early(self, operations: Sequence[Node]) -> dict[int, int]:
        """id -> input number of the outputs to be restored among `operations`, which follow the last check.

        Where what is computed from a new state reads the restored one, XLA updates the state in place as without
        checks; chosen at the end, both the old and the new state would live until then.
        """
        ids = [self.graph.outputs[k] for k in self._restore]
        after = {node.id for node in operations}
        chosen = zip(ids, self._restore.values(), strict=True)
        return {id: position for id, position in chosen if id in after and ids.count(id) == 1}

    def _kept(self, id: int, position: int) -> str:
        """The value `id`, or that input if a check has failed."""
        return f"lax.select(fine, {self._names[id]}, {self._names[self.graph.inputs[position]]})"

    @staticmethod
    def _checked_inside(node: Node) -> bool:
        return node.op.structured and may_fail(node)

    def _define(self, body: Graph, node: Node) -> str:
        """Define the function of a graph that `node` runs. Returns its name."""
        name = f"{body.name}_{self._names[node.id]}"
        if name in self._defined:
            name = f"{name}_{len(self._defined)}"
        self._defined.add(name)
        inner = Source(body, name, self, failing=self._checked_inside(node), known=inside(node, self._held),
                       without=self._without)  # fmt: skip
        self._statements.append(inner.text.removesuffix("\n"))
        self._plain.append(inner.plain)
        return name

    def _expression(self, node: Node) -> str:
        text = self._written(node)
        if not loses_zero(node, self._avals(node), [self._held.get(i) for i in node.inputs]):
            return text
        setattr(self.scope["ops"], unsigned.__name__, unsigned)
        return f"ops.{unsigned.__name__}({text})"

    def _avals(self, node: Node) -> list[Any]:
        return [self.graph.nodes[i].type for i in node.inputs]

    def _written(self, node: Node) -> str:
        if node.id in self._places:
            (pack,), name = node.inputs, self._names[node.id]
            return f"lax.dynamic_slice({self._names[pack]}, (at_{name},), ({node.size},))"
        matrix = self._matrix_of(node)
        if matrix is not None:
            return factors.use(node, self._factors_of(matrix[0]), matrix[1], self._names)
        vector = diagonals.vector_of(node, self.graph.nodes, self._uses)
        if vector is not None:
            setattr(self.scope["ops"], diagonals.diagonal_matrix.__name__, diagonals.diagonal_matrix)
            return f"ops.diagonal_matrix({self._names[vector]})"
        for written in () if TRANSPOSED in self._without else (product, substitution):
            transposed = written(node, self.graph.nodes, self._names, self._uses)
            if transposed is not None:
                return transposed
        avals = self._avals(node)
        if node.op.name not in OVERRIDES and not _of_complex(node.op, avals):
            text = expression(node, [self._names[i] for i in node.inputs], avals)
            if text is not None:
                return text
        call, kernel = jax_kernel(node.op, avals)
        if call.startswith("ops."):
            setattr(self.scope["ops"], call.removeprefix("ops."), kernel)
        text = self._of_number(node) or f"{call}({self._arguments(node)})"
        if not any(self._halves(node)):
            return text
        if not node.op.several:
            return f"{text}.astype({self._value(node.dtype)})"
        setattr(self.scope["ops"], narrowed.__name__, narrowed)
        return f"ops.{narrowed.__name__}({text}, {self._value(tuple(aval.dtype for aval in node.results))})"

    def _matrix_of(self, node: Node) -> tuple[int, bool] | None:
        """See `factors.matrix_of`; None where each node is to factorize its matrix by itself."""
        return None if FACTORS in self._without else factors.matrix_of(node, self.graph.nodes)

    def _factors_of(self, id: int) -> str:
        """The name of the factors of a matrix, which are computed where they are first asked for."""
        if id not in self._factors:
            for name, kernel in factors.KERNELS.items():
                setattr(self.scope["ops"], name, kernel)
            self._factors[id] = f"factors_{self._names[id]}"
            known = factors.known_of(id, self.graph.nodes)
            self._state(f"{self._factors[id]} = ops.factorize({self._names[id]}, known={known!r})")
        return self._factors[id]

    def _of_number(self, node: Node) -> str | None:
        """What is cheaper than the kernel, where operands hold one number."""
        numbers = [self._held.get(i) for i in node.inputs]
        if all(number is None for number in numbers):
            return None
        return of_numbers(node, self._operands(node), self._avals(node), numbers)

    def _halves(self, node: Node) -> list[bool]:
        return in_float32(node.op, self._avals(node))

    def _arguments(self, node: Node) -> str:
        operands = self._operands(node)
        params = dict(node.params)
        if node.op.structured:
            for k in starts(node, self._held):
                operands[k] = f"lax.optimization_barrier({operands[k]})"
            params = {name: self._with_functions(value, node) for name, value in params.items()}
            if self._checked_inside(node):
                params["checked"] = True
        return ", ".join([*operands, *(f"{name}={self._value(value)}" for name, value in params.items())])

    def _operands(self, node: Node) -> list[str]:
        pairs = zip((self._names[i] for i in node.inputs), self._halves(node), strict=True)
        return [f"{name}.astype(np.float32)" if half else name for name, half in pairs]

    def _with_functions(self, value: Any, node: Node) -> Any:
        """A parameter with the names of functions in place of graphs."""
        if isinstance(value, Graph):
            return _Name(self._define(value, node))
        return tuple(self._with_functions(part, node) for part in value) if isinstance(value, tuple) else value

    def _asked(self, node: Node) -> str:
        """Whether the check of a node holds."""
        matrix = self._matrix_of(node)
        if matrix is not None:
            return f"ops.regular_factors({self._factors_of(matrix[0])})"
        promised = factors.promised(node, self.graph.nodes)
        if promised is not None:
            return f"ops.definite_factors({self._factors_of(promised)}, {self._names[promised]})"
        return f"{self._check(node.op)}({self._arguments(node)})"

    def _check(self, op: Op) -> str:
        check = op.check
        assert check is not None

        setattr(self.scope["checks"], op.name, CHECKS.get(op.name, functools.partial(check.ok, jnp)))
        return f"checks.{op.name}"

    def _value(self, value: Any) -> str:
        if isinstance(value, _Name):
            return str(value)
        if isinstance(value, np.dtype):
            return f"np.dtype('{value}')"
        if isinstance(value, Literal):
            name = f"k{len(self.scope)}"
            self.scope[name] = value
            return name
        if isinstance(value, float):
            return repr(value) if np.isfinite(value) else f"float('{value}')"
        if isinstance(value, complex):
            return f"complex({self._value(value.real)}, {self._value(value.imag)})"
        if isinstance(value, tuple):
            return f"({', '.join(map(self._value, value))}{',' if len(value) == 1 else ''})"
        if isinstance(value, (int, bool, str, type(None))):
            return repr(value)
        if callable(value):
            name = f"k{len(self.scope)}"
            self.scope[name] = value
            return name
        raise GraphError(f"a parameter of type {type(value).__name__} cannot be lowered: {value!r}")

    def function(self) -> Callable[..., tuple[Any, ...]]:
        """The Python function that the text defines. It runs in blocks, whose lines are those of the text."""
        filename = f"<jax program {self.graph.name} {next(_numbers)}>"
        linecache.cache[filename] = (len(self.text), None, self.text.splitlines(keepends=True), filename)
        names, scope = self._parameters(), self.scope
        blocks: list[CodeType] = []
        line = 1
        for k in range(0, len(self._statements), BLOCK):
            text = "\n".join(self._statements[k : k + BLOCK])
            blocks.append(compile("\n" * line + text, filename, "exec"))
            line += text.count("\n") + 1
        result = compile(self._result, filename, "eval")

        def function(*arrays: Any) -> tuple[Any, ...]:
            values = {**scope, **dict(zip(names, arrays, strict=True))}
            for block in blocks:
                exec(block, values)
            return eval(result, values)

        weakref.finalize(function, linecache.cache.pop, filename, None)
        return function


def narrowed(results: Sequence[Any], dtypes: Sequence[np.dtype]) -> tuple[Any, ...]:
    """The results of an operation that has computed in float32, each in its own dtype."""
    return tuple(result.astype(dtype) for result, dtype in zip(results, dtypes, strict=True))


class _Name(str):
    """A name that stands in the source as it is."""


def first_failure(found: Sequence[Any], numbers: Sequence[int | None]) -> Any:
    """The number of the first check that failed, or -1, as an int32 scalar.

    found: for each check whether it holds, and its number among `numbers`; or, with None there, a failure number.
    """
    first = np.int32(-1)
    for ok, number in reversed(list(zip(found, numbers, strict=True))):
        fine = jnp.asarray(ok if number is not None else ok < 0)
        first = lax.select(fine, first, ok if number is None else np.int32(number))
    return first
