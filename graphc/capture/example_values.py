"""The values of a graph under construction, for the arguments it is being traced with."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from graphc.capture.generated import Names
from graphc.capture.sources import Argument, Lifted
from graphc.ir import INPUT, Builder, Graph, Node
from graphc.ir.dimensions import concrete_node, dims_of
from graphc.ir.structure import ancestors, may_fail
from graphc.ops import OPS
from graphc.ops.dims import recordings
from graphc.ops.dtypes import is_half
from graphc.ops.interpret import run_kernel

# what operators of Python give for its own numbers. Where they raise, as by zero, kernels give an infinity
_OPERATORS = {
    np.add: "{} + {}", np.subtract: "{} - {}", np.multiply: "{} * {}", np.divide: "{} / {}", np.negative: "-{}",
    np.absolute: "abs({})", np.equal: "{} == {}", np.not_equal: "{} != {}", np.less: "{} < {}",
    np.less_equal: "{} <= {}", np.greater: "{} > {}", np.greater_equal: "{} >= {}",
}  # fmt: skip
_OF_INTEGERS = {OPS["remainder"].kernel: "{} % {}", OPS["floor_divide"].kernel: "{} // {}"}
_CAST = OPS["cast"]
_PYTHON = {np.dtype(np.float64): "float", np.dtype(np.int64): "int", np.dtype(np.bool): "bool"}
_RAISED = ZeroDivisionError, OverflowError, ValueError


class Seen(NamedTuple):
    """The values of an array at some time; equal to others bit for bit."""

    shape: tuple[int, ...]
    dtype: np.dtype
    data: bytes

    def __repr__(self) -> str:
        return str(np.ndarray(self.shape, self.dtype, self.data))


def seen(array: np.ndarray) -> Seen:
    """The values of `array` now."""
    return Seen(array.shape, array.dtype, array.tobytes())


@final
class ExampleValues:
    """Computes what Python asks for while a function is traced, node by node on NumPy, each node once."""

    def __init__(self, builder: Builder, fetch: Callable[[int], np.ndarray]):
        self._builder = builder
        self._fetch = fetch  # the array of input number k
        self._known: dict[int, np.ndarray] = {}

    def __call__(self, id_: int) -> np.ndarray:
        """The value of node `id_`. Raises what its run-time checks, or those of what it depends on, raise."""
        known, nodes = self._known, self._builder.nodes
        missing = ancestors(nodes, [id_], known) - known.keys()
        for i in sorted(missing):  # the order in which they were appended
            known[i] = self._compute(nodes[i])
        return known[id_]

    def tell(self, id_: int, flat: np.ndarray) -> None:
        """Let the value of node `id_` be what XLA has computed, given as a vector."""
        shape = self(id_).shape
        if flat.size == math.prod(shape):
            self._known[id_] = flat.reshape(shape)

    def hold(self) -> None:
        """Keep the inputs as they are now, whatever is written to their memory later."""
        nodes, inputs = self._builder.nodes, self._builder.inputs
        held = {id_: np.array(self._compute(nodes[id_])) for id_ in inputs}
        for id_ in [i for i, node in nodes.items() if i in self._known and node.inputs]:
            self._known[id_] = np.array(self._known[id_])  # may be a view of an input
        self._known.update(held)

    def _compute(self, node: Node) -> np.ndarray:
        if node.op is INPUT:
            return self._fetch(self._builder.inputs.index(node.id))
        operands = [self._known[i] for i in node.inputs]
        if recordings:
            node = concrete_node(node, None)
        check = node.check
        if check is not None and not check.ok(np, *operands, **node.params):
            raise check.failure(node.params, node.where, operands)
        return run_kernel(node.op, operands, node.params)


@final
class Constants:
    """The nodes whose values are the same in every run: they depend on no input and no symbolic size."""

    def __init__(self, builder: Builder):
        self._builder = builder
        self._known: dict[int, bool] = {}

    def __contains__(self, id_: int) -> bool:
        nodes, known = self._builder.nodes, self._known
        passed: set[int] = set()
        stack = [id_]
        while stack:
            i = stack.pop()
            if i in passed or known.get(i):
                continue
            node = nodes[i]
            varies = node.op is INPUT or node.op.impure or i in known
            if varies or (recordings and any(True for _ in dims_of(node))):
                known[i] = known[id_] = False
                return False
            passed.add(i)
            stack.extend(node.inputs)
        known.update(dict.fromkeys(passed, True))
        return True


@final
class HostedValues:
    """Computes values anew, given the numbers among the arguments by position. `positions`: those that it needs.

    steps    nodes in order, each with the source that it is, or None
    results  the ids of those whose values are asked for
    """

    def __init__(self, steps: Mapping[int, tuple[Node, Any]], results: Sequence[int]):
        self._steps = [steps[id_] for id_ in sorted(steps)]
        self._results = results
        self.positions = [source.position for _, source in self._steps if isinstance(source, Argument)]
        self._written: Callable[[Mapping[int, Any]], Sequence[np.ndarray]] | None = None
        self._asked = False

    def __call__(self, numbers: Mapping[int, Any]) -> Seen:
        """The first value."""
        return seen(np.asarray(self._values(numbers)[0]))

    def numbers(self) -> list[Any]:
        """The values as Python's numbers, if they need none of the arguments."""
        return [value.item() if isinstance(value, (np.ndarray, np.generic)) else value for value in self._values({})]

    @property
    def may_fail(self) -> bool:
        """Whether one of the steps has a check, which is left out here."""
        return any(may_fail(node) for node, _ in self._steps)

    def _values(self, numbers: Mapping[int, Any]) -> Sequence[Any]:
        if self._asked and self._written is None:  # as often as the program is called, then
            self._written = self._code()
        self._asked = True
        if self._written is not None:
            try:
                return self._written(numbers)
            except _RAISED:  # by one of Python's operators
                pass
        known: dict[int, np.ndarray] = {}
        for node, source in self._steps:
            if source is None:
                known[node.id] = run_kernel(node.op, [known[i] for i in node.inputs], node.params)
            else:
                number = numbers[source.position] if isinstance(source, Argument) else source.get()
                known[node.id] = np.asarray(number, node.dtype)
        return [known[id_] for id_ in self._results]

    def _code(self) -> Callable[[Mapping[int, Any]], Sequence[Any]]:
        """The same as straight-line code, on Python's numbers where they are what the nodes have: their operators take
        a thirtieth of a ufunc's call on arrays."""
        names, lines = Names(), ["def hosted(numbers):"]
        known: dict[int, str] = {}
        python = {n.id: _PYTHON[n.dtype] for n, _ in self._steps
                  if not n.op.several and n.shape == () and n.dtype in _PYTHON}  # fmt: skip
        half = {node.id for node, _ in self._steps if any(is_half(aval.dtype) for aval in node.results)}
        for node, source in self._steps:
            known[node.id] = value = f"h{node.id}"
            number = ".item()" if node.id in python else ""
            operands = [known[i] for i in node.inputs]
            arrays = [f"asarray({known[i]})" if i in python else known[i] for i in node.inputs]
            kernel = None if node.op.structured else node.op.kernel
            if source is not None:
                given = f"numbers[{source.position}]" if isinstance(source, Argument) else f"{names.of(source.get)}()"
                made = f"{python[node.id]}({given})" if number else f"asarray({given}, {names.of(node.dtype)})"
                lines.append(f" {value} = {made}")
            elif not operands and kernel is not None:
                constant = run_kernel(node.op, [], node.params)
                known[node.id] = names.of(constant.item() if number else constant)
            elif kernel is None or node.op.several or not half.isdisjoint((node.id, *node.inputs)):
                op, params = names.of(node.op), names.of(node.params)
                lines.append(f" {value} = {names.of(run_kernel)}({op}, [{', '.join(arrays)}], {params}){number}")
            elif (written := _in_python(node, kernel, python)) is not None:
                lines.append(f" {value} = {written.format(*operands)}")
            else:
                params = f", **{names.of(dict(node.params))}" if node.params else ""
                made = f"{names.of(kernel)}({', '.join(arrays)}{params})"
                lines.append(f" {value} = {made}.item()" if number else f" {value} = asarray({made})")
        whole = [known[i] for i, kind in python.items() if kind == "int" and known[i] == f"h{i}"]
        if whole:  # kernels wrap around
            beyond = " or ".join(f"not {-(2**63)} <= {value} < {2**63}" for value in whole)
            lines.append(f" if {beyond}: raise OverflowError")
        lines.append(f" return {', '.join(known[id_] for id_ in self._results)},")
        return names.bind("hosted", lines, {"asarray": np.asarray})


def _in_python(node: Node, kernel: Any, python: Mapping[int, str]) -> str | None:
    """The expression that `node` is on Python's numbers; None if it has none."""
    if not python.keys() >= {node.id, *node.inputs}:
        return None
    if node.op is _CAST:
        return python[node.id] + "({})"
    kinds = {python[i] for i in node.inputs}
    if "bool" in kinds:  # which Python's operators take for integers
        return None
    return _OPERATORS.get(kernel) or (_OF_INTEGERS.get(kernel) if kinds == {"int"} else None)


@final
class Hosted:
    """Values that depend on numbers in lifted places, or among the arguments, alone: known before a program runs."""

    def __init__(self, builder: Builder | Graph, sources: Sequence[Any], lifted: Collection[Any] = ()):
        self._builder = builder
        self._sources = sources
        self._lifted = lifted
        self._others: set[int] = set()  # nodes that depend on more

    def getter(self, id_: int) -> HostedValues | None:
        """What computes the value of node `id_` anew; None if it depends on more, or on nothing."""
        needed = self._needed(id_)
        return HostedValues(needed, [id_]) if any(source for _, source in needed.values()) else None

    def together(self, ids: Sequence[int]) -> HostedValues | None:
        """What computes the values of all these nodes; None if there are none."""
        steps = {i: step for id_ in ids for i, step in self._needed(id_).items()}
        return HostedValues(steps, ids) if ids else None

    def _needed(self, id_: int) -> dict[int, tuple[Node, Any]]:
        """The nodes that node `id_` depends on, each with the source that it is, or None; none if there are others."""
        nodes, builder = self._builder.nodes, self._builder
        needed: dict[int, tuple[Node, Any]] = {}
        stack = [id_]
        while stack:
            i = stack.pop()
            if i in needed:
                continue
            node, source = nodes[i], None
            if node.op is INPUT:
                source = self._sources[builder.inputs.index(i)]
                if source not in self._lifted and (not isinstance(source, Lifted) or source.kind is None):
                    self._others.add(i)
            if recordings and any(True for _ in dims_of(node)):  # sizes are known then, too, but not as sources
                self._others.add(i)
            if i in self._others:
                self._others.add(id_)
                return {}
            needed[i] = node, source
            stack.extend(node.inputs)
        return needed
