"""`Session` and `function`: running graphs that were built from placeholders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from eager.core.tensor import Tensor
from graphc import errors
from graphc.capture.building import Building, building_of, graph_of, outside
from graphc.capture.program import Program
from graphc.capture.sources import Argument, Captured, Computed, Effect
from graphc.capture.symbolic_program import derived, sizes_of_shapes
from graphc.capture.tree import Slot, leaves_of, map_leaves
from graphc.execution.runner import CheckFailed, Runner
from graphc.execution.target import Target
from graphc.ir import INPUT
from graphc.ops.aval import Aval
from graphc.ops.dims import is_dim
from graphc.passes import Settings


def _shown(shape: Sequence[Any]) -> str:
    return "(" + ", ".join("?" if is_dim(n) else str(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"


@final
class Session:
    """Runs parts of the graph that placeholders of this thread are in. As TensorFlow's first `Session`.

    device  "cpu", "gpu" or None for JAX's default
    strict  as for `graphc.compile`
    """

    def __init__(self, device: str | None = None, *, strict: bool = False):
        self._device = device
        self._strict = strict
        self._functions: dict[Any, Function] = {}
        self._closed = False

    def __repr__(self) -> str:
        return f"<Session on {self._device or 'the default device'}{', closed' * self._closed}>"

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """The values of `fetches`, tensors in any nest, for the values that `feed_dict` gives placeholders.

        Any tensor of the graph may be fed; what it was computed from is then not needed. Variables (tensors with
        values) are read as they are now. Results are tensors; the program is compiled once for each set of fetches.

        Raises RuntimeError if the session is closed, GraphError naming a placeholder that is needed and not fed,
        TypeError for keys or fetches that are no tensors, ValueError naming a placeholder and both shapes.
        """
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        feed = dict(feed_dict or {})
        leaves = list(leaves_of(fetches))
        for leaf in leaves if not isinstance(fetches, (str, int, float)) else [fetches]:
            if not isinstance(leaf, Tensor):
                raise TypeError(f"Session.run: a fetch must be a Tensor, got {type(leaf).__name__}")
        if not leaves:
            return fetches
        for key in feed:
            if building_of(key) is None:
                raise TypeError(
                    f"Session.run: the keys of feed_dict must be placeholders or tensors of the graph, got {key!r}"
                )
        key = tuple(map(id, leaves)), tuple(map(id, feed))
        found = self._functions.get(key)
        if found is None:
            found = self._functions[key] = Function(list(feed), leaves, (), "session", self._device, self._strict)
        values = iter(found(*feed.values()))
        return map_leaves(fetches, lambda leaf, path: next(values))

    def close(self) -> None:
        """Forget the compiled programs; `run` raises from now on."""
        self._functions.clear()
        self._closed = True

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@final
class Function:
    """A graph as a function of some of its tensors: what `function` returns. `graph` is what it computes."""

    def __init__(
        self, inputs: Sequence[Tensor], outputs: Any, updates: Sequence[tuple[Tensor, Tensor]], name: str,
        device: str | None, strict: bool,
    ):  # fmt: skip
        self.__name__ = name
        self._inputs = list(inputs)  # also keeps the placeholders
        self._outputs, self._updates = outputs, list(updates)
        self._device, self._strict = device, strict
        leaves = list(leaves_of(outputs))
        tensors = [*leaves, *(value for _, value in updates)]
        building = next((b for t in (*inputs, *tensors) if (b := building_of(t)) is not None), None)
        if building is None:
            raise errors.GraphError(f"{name}: neither the inputs nor the outputs belong to a graph with placeholders")
        self._program = self._made(building, leaves, tensors)
        self._shapes = [tuple(t._d.shape) for t in self._inputs]
        self._runners: dict[Any, Runner] = {}

    def _made(self, building: Building, leaves: list[Tensor], tensors: list[Tensor]) -> Program:
        tracer, nodes = building.tracer, building.tracer.builder.nodes
        fed = [tracer.read(t).id for t in self._inputs]
        graph = graph_of(building, tensors, self.__name__, fed)
        self._names = [nodes[i].params["name"] if nodes[i].op is INPUT else f"input_{k}" for k, i in enumerate(fed)]
        graph = graph.with_inputs(dict(zip(fed, self._names, strict=True)))
        sources: list[Any] = [Argument(k) for k in range(len(fed))]
        place = {i: k for k, i in enumerate(tracer.builder.inputs)}
        for i in graph.inputs[len(fed) :]:
            source = tracer.state.sources[place[i]]
            if isinstance(source, Argument):
                missing, aval = nodes[i].params["name"], nodes[i].aval
                raise errors.GraphError(
                    f"{self.__name__}: You must feed a value for placeholder '{missing}' with dtype and shape {aval}"
                )
            sources.append(source)
        refs = graph.outputs
        count = iter(range(len(leaves)))
        effects = tuple(
            Effect(Captured(target), id) for (target, _), id in zip(self._updates, refs[len(leaves) :], strict=True)
        )  # fmt: skip
        return Program.simple(
            graph, sources, effects, map_leaves(self._outputs, lambda leaf, path: Slot(next(count))),
            [Computed(id, k) for k, id in enumerate(refs[: len(leaves)])],
        )  # fmt: skip

    @property
    def graph(self) -> Any:
        """The graph that the function runs."""
        return self._program.graph

    def __call__(self, *values: Any) -> Any:
        """The outputs for the values of the inputs; the updates are carried out afterwards, all at once."""
        if len(values) != len(self._inputs):
            names = ", ".join(self._names)
            raise TypeError(
                f"{self.__name__}() takes {len(self._inputs)} values ({names}) but {len(values)} were given"
            )
        with outside():
            tensors = [
                self._fitting(v, t, name) for v, t, name in zip(values, self._inputs, self._names, strict=True)
            ]  # fmt: skip
            try:
                return self._runner(tensors).run(tensors)
            except CheckFailed as failed:
                raise failed.__cause__ or failed from None

    def _fitting(self, value: Any, wanted: Tensor, name: str) -> Tensor:
        """`value` as a tensor that may be fed. TypeError or ValueError if it does not fit."""
        dtype, shape = wanted._dtype(), tuple(wanted._d.shape)
        if not isinstance(value, Tensor):
            array = np.asarray(value)
            if array.dtype != dtype:
                if not isinstance(value, (np.ndarray, np.generic)) or np.can_cast(array.dtype, dtype, "same_kind"):
                    array = array.astype(dtype)
                else:
                    raise TypeError(f"Cannot feed value of dtype {array.dtype} for '{name}', which has dtype {dtype}")
            value = Tensor._wrap(array)
        if value._dtype() != dtype:
            raise TypeError(f"Cannot feed value of dtype {value._dtype()} for '{name}', which has dtype {dtype}")
        given = tuple(value._d.shape)
        if len(given) != len(shape) or any(not is_dim(n) and n != m for n, m in zip(shape, given, strict=True)):
            raise ValueError(
                f"Cannot feed value of shape {_shown(given)} for '{name}', which has shape {_shown(shape)}"
            )
        return value

    def _runner(self, tensors: list[Tensor]) -> Runner:
        """The program for tensors of these shapes."""
        captured = [s.tensor for s in self._program.sources if isinstance(s, Captured)]
        key = tuple(Aval(tuple(t._d.shape), t._dtype()) for t in (*tensors, *captured))
        found = self._runners.get(key)
        if found is None:
            program = derived(
                self._program, sizes_of_shapes(zip(self._shapes, (t._d.shape for t in tensors), strict=True))
            )
            found = self._runners[key] = Runner(program, tensors, Target(Settings(self._strict), self._device))
        return found

    def __repr__(self) -> str:
        return f"<graphc.function {self.__name__}({', '.join(self._names)})>"


def function(
    inputs: Sequence[Tensor],
    outputs: Any = (),
    updates: Mapping[Tensor, Tensor] | Sequence[tuple[Tensor, Tensor]] = (),
    *,
    name: str = "function",
    device: str | None = None,
    strict: bool = False,
) -> Function:
    """A callable that computes `outputs` from values of `inputs`, and then gives variables new values.

    inputs   placeholders, or other tensors of the graph
    outputs  tensors of the graph, in any nest
    updates  pairs (variable, new value): tensors with values, and tensors of the graph of the same shape and dtype.
             All new values are computed from the old ones. As in Theano.

    Raises GraphError naming a placeholder that is needed and not among `inputs`, TypeError or ValueError for an update
    that does not fit.

    >>> import eager as torch, graphc
    >>> total, x = torch.zeros(()), graphc.placeholder((), name="x")
    >>> add = graphc.function([x], total + x, updates=[(total, total + x)])
    >>> add(2.0), add(3.0), total
    (tensor(2.), tensor(5.), tensor(5.))
    """
    pairs = list(updates.items()) if isinstance(updates, Mapping) else list(updates)
    for target, value in pairs:
        if not isinstance(target, Tensor) or building_of(target) is not None:
            raise TypeError("function: what is updated must be a tensor with values, not one of the graph")
        if not isinstance(value, Tensor):
            raise TypeError(f"function: the new value must be a Tensor, got {type(value).__name__}")
        wanted, given = (Aval(tuple(t._d.shape), t._dtype()) for t in (target, value))
        if wanted != given:
            raise ValueError(f"function: the update of a {wanted} has the new value {given}")
    if len({id(target) for target, _ in pairs}) != len(pairs):
        raise ValueError("function: a variable is updated twice")
    return Function(list(inputs), outputs, pairs, name, device, strict)
