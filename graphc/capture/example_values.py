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
from graphc.ops.dims import recordings
from graphc.ops.dtypes import is_half
from graphc.ops.interpret import run_kernel

_OPERATORS = {
    np.add: "+", np.subtract: "-", np.multiply: "*", np.divide: "/", np.equal: "==", np.not_equal: "!=",
    np.less: "<", np.less_equal: "<=", np.greater: ">", np.greater_equal: ">=",
}  # fmt: skip


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
        return seen(self._values(numbers)[0])

    def numbers(self) -> list[Any]:
        """The values as Python's numbers, if they need none of the arguments."""
        return [value.item() for value in self._values({})]

    @property
    def may_fail(self) -> bool:
        """Whether one of the steps has a check, which is left out here."""
        return any(may_fail(node) for node, _ in self._steps)

    def _values(self, numbers: Mapping[int, Any]) -> Sequence[np.ndarray]:
        if self._written is not None:
            return self._written(numbers)
        if self._asked:  # as often as the program is called, then
            self._written = self._code()
        self._asked = True
        known: dict[int, np.ndarray] = {}
        for node, source in self._steps:
            if source is None:
                known[node.id] = run_kernel(node.op, [known[i] for i in node.inputs], node.params)
            else:
                number = numbers[source.position] if isinstance(source, Argument) else source.get()
                known[node.id] = np.asarray(number, node.dtype)
        return [known[id_] for id_ in self._results]

    def _code(self) -> Callable[[Mapping[int, Any]], Sequence[np.ndarray]]:
        """The same as straight-line code. NumPy's operators on its scalars take a tenth of a ufunc's call on arrays."""
        names, lines = Names(), ["def hosted(numbers):"]
        known: dict[int, str] = {}
        scalars = {node.id for node, _ in self._steps if not node.op.several and node.shape == ()}
        half = {node.id for node, _ in self._steps if any(is_half(aval.dtype) for aval in node.results)}
        for node, source in self._steps:
            known[node.id] = value = f"h{node.id}"
            number = "[()]" if node.id in scalars else ""
            operands = [known[i] for i in node.inputs]
            arrays = [f"asarray({known[i]})" if i in scalars else known[i] for i in node.inputs]
            kernel = None if node.op.structured else node.op.kernel
            if source is not None:
                given = f"numbers[{source.position}]" if isinstance(source, Argument) else f"{names.of(source.get)}()"
                lines.append(f" {value} = asarray({given}, {names.of(node.dtype)}){number}")
            elif not operands and kernel is not None:
                constant = run_kernel(node.op, [], node.params)
                known[node.id] = names.of(constant[()] if number else constant)
            elif kernel is None or node.op.several or not half.isdisjoint((node.id, *node.inputs)):
                op, params = names.of(node.op), names.of(node.params)
                lines.append(f" {value} = {names.of(run_kernel)}({op}, [{', '.join(arrays)}], {params}){number}")
            elif self._has_operator(node, kernel, scalars):
                lines.append(f" {value} = {f' {_OPERATORS[kernel]} '.join(operands)}")
            else:
                params = f", **{names.of(dict(node.params))}" if node.params else ""
                lines.append(f" {value} = asarray({names.of(kernel)}({', '.join(arrays)}{params})){number}")
        lines.append(f" return {', '.join(f'asarray({known[id_]})' for id_ in self._results)},")
        return names.bind("hosted", lines, {"asarray": np.asarray})

    @staticmethod
    def _has_operator(node: Node, kernel: Any, scalars: set[int]) -> bool:
        """Whether a node is what NumPy's operator on scalars gives; of integers that overflow it would warn."""
        known = isinstance(kernel, np.ufunc) and kernel in _OPERATORS and node.dtype.kind not in "iu"
        return known and scalars.issuperset((node.id, *node.inputs))


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
