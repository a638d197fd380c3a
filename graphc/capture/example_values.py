"""The values of a graph under construction, for the arguments it is being traced with."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from graphc.capture.sources import Argument, Lifted
from graphc.ir import INPUT, Builder, Node
from graphc.ir.dimensions import concrete_node, dims_of
from graphc.ir.structure import ancestors
from graphc.ops.dims import recordings
from graphc.ops.interpret import run_kernel


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
class HostedValue:
    """Computes a value anew, given the numbers among the arguments by position. `positions`: those that it needs."""

    def __init__(self, steps: list[tuple[Node, Any]]):
        self._steps = steps
        self.positions = [source.position for _, source in steps if isinstance(source, Argument)]

    def __call__(self, numbers: Mapping[int, Any]) -> Seen:
        known: dict[int, np.ndarray] = {}
        for node, source in self._steps:
            if source is None:
                known[node.id] = run_kernel(node.op, [known[i] for i in node.inputs], node.params)
            else:
                number = numbers[source.position] if isinstance(source, Argument) else source.get()
                known[node.id] = np.asarray(number, node.dtype)
        return seen(known[self._steps[-1][0].id])


@final
class Hosted:
    """Values that depend on numbers in lifted places, or among the arguments, alone: known before a program runs."""

    def __init__(self, builder: Builder, sources: Sequence[Any], lifted: Collection[Any]):
        self._builder = builder
        self._sources = sources
        self._lifted = lifted
        self._others: set[int] = set()  # nodes that depend on more

    def getter(self, id_: int) -> HostedValue | None:
        """What computes the value of node `id_` anew; None if it depends on more."""
        nodes, builder = self._builder.nodes, self._builder
        needed: dict[int, Any] = {}  # node -> the source that it is, or None
        stack = [id_]
        while stack:
            i = stack.pop()
            if i in needed:
                continue
            needed[i] = None
            node = nodes[i]
            if node.op is INPUT:
                needed[i] = source = self._sources[builder.inputs.index(i)]
                if source not in self._lifted and (not isinstance(source, Lifted) or source.kind is None):
                    self._others.add(i)
            if recordings and any(True for _ in dims_of(node)):  # sizes are known then, too, but not as sources
                self._others.add(i)
            if i in self._others:
                self._others.add(id_)
                return None
            stack.extend(node.inputs)
        if not any(needed.values()):
            return None
        return HostedValue([(nodes[i], needed[i]) for i in sorted(needed)])
