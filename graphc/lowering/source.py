"""A graph as the source of a JAX function.

Each node becomes one line: `v5 = jnp.tanh(v4)`. Ops whose `impl` is a name call jax.numpy (or jax.scipy.special);
the others call `ops.<name>`, the op's shared implementation on jax.numpy, or its override.
"""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np

from graphc.errors import GraphError
from graphc.ir.graph import Graph, Node
from graphc.ir.text import names_of
from graphc.lowering.overrides import OVERRIDES
from graphc.ops import Literal, Op

_numbers = itertools.count(1)


def jax_kernel(op: Op) -> tuple[str, Callable[..., Any]]:
    """How source calls `op` under JAX, and the function that the name stands for."""
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


class Source:
    """The text of a JAX function, and the objects that its names stand for."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.scope: dict[str, Any] = {
            "jnp": jnp, "jax": jax, "np": np, "special": jax.scipy.special, "ops": SimpleNamespace(),
            "checks": SimpleNamespace(), "first_failure": first_failure,
        }  # fmt: skip
        self.checked: list[Node] = []
        self._names = names_of(graph)
        self.text = self._write()

    def _write(self) -> str:
        graph, names = self.graph, self._names
        lines = [f"def {graph.name}({', '.join(names[id] for id in graph.inputs)}):"]
        for node in graph.operations():
            operands = ", ".join(names[i] for i in node.inputs)
            params = ", ".join(f"{name}={self._value(value)}" for name, value in node.params.items())
            arguments = ", ".join(filter(None, (operands, params)))
            call, kernel = jax_kernel(node.op)
            if call.startswith("ops."):
                setattr(self.scope["ops"], node.op.name, kernel)
            where = f"  # {node.where}" if node.where else ""
            lines.append(f"    {names[node.id]} = {call}({arguments}){where}")
            if node.op.check is not None:
                lines.append(f"    ok{len(self.checked)} = {self._check(node.op)}({arguments})")
                self.checked.append(node)
        outputs = [names[id] for id in graph.outputs]
        if self.checked:
            outputs.append(f"first_failure({', '.join(f'ok{i}' for i in range(len(self.checked)))})")
        lines.append(f"    return ({', '.join(outputs)}{',' if len(outputs) == 1 else ''})")
        return "\n".join(lines) + "\n"

    def _check(self, op: Op) -> str:
        check = op.check
        assert check is not None

        def ok(*arrays: Any, **params: Any) -> Any:
            return check.ok(jnp, *arrays, **params)

        setattr(self.scope["checks"], op.name, ok)
        return f"checks.{op.name}"

    def _value(self, value: Any) -> str:
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
        raise GraphError(f"a parameter of type {type(value).__name__} cannot be lowered: {value!r}")

    def function(self) -> Callable[..., tuple[Any, ...]]:
        """The Python function, defined from the text."""
        filename = f"<jax program {self.graph.name} {next(_numbers)}>"
        linecache.cache[filename] = (len(self.text), None, self.text.splitlines(keepends=True), filename)
        exec(compile(self.text, filename, "exec"), self.scope)
        function = self.scope.pop(self.graph.name)  # not kept in its own globals: it goes when its program goes
        weakref.finalize(function, linecache.cache.pop, filename, None)
        return function


def first_failure(*oks: Any) -> Any:
    """The number of the first check that failed, or -1, as an int32 scalar."""
    failed = jnp.stack([jnp.logical_not(jnp.asarray(ok)) for ok in oks])
    return jnp.where(failed.any(), failed.argmax(), -1).astype(np.int32)


def keep_on_failure(
    function: Callable[..., tuple[Any, ...]], restore: Mapping[int, int]
) -> Callable[..., tuple[Any, ...]]:
    """`function`, whose last output is a failure number, giving input `restore[k]` as output k when a check fails."""

    def guarded(*arrays: Any) -> tuple[Any, ...]:
        *outputs, failure = function(*arrays)
        fine = failure < 0
        for k, i in restore.items():
            outputs[k] = jnp.where(fine, outputs[k], arrays[i])
        return (*outputs, failure)

    return guarded
