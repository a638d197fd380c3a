"""HostExecutable: a graph lowered to NumPy, which is called as `graphc.lowering.executable.Executable` is."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any, NoReturn, final

import numpy as np

from graphc.ir.calling import arrays_of, raw
from graphc.ir.graph import Graph, Node, fill
from graphc.lowering.host.source import HostSource
from graphc.ops.interpret import run_kernel


@final
class HostExecutable:
    """A graph as straight-line NumPy. See `Executable` for what its attributes mean.

    source    the NumPy program, as text
    dispatch  f(*ndarrays): the outputs, as ndarrays that nobody else has. Raises what a run-time check has found, with
              `outputs`. Nothing is donated, and nothing has to be awaited
    """

    on_host = True
    on_default_device = False
    donated: tuple[int, ...] = ()

    def __init__(self, graph: Graph, settled: Collection[int] = ()):
        start = time.perf_counter()
        self.graph = graph
        program = HostSource(graph, settled, self._fail)
        self.source = program.text
        self.fails = bool(program.checked)
        self.dispatch: Any = program.function()
        self.memory: int | None = program.memory
        self.call: Any = self.dispatch
        self.seconds = {"numpy": time.perf_counter() - start}

    def _fail(self, node: Node, arrays: Sequence[np.ndarray]) -> NoReturn:
        assert node.check is not None
        error = node.check.failure(node.params, node.where)
        error.outputs = self._outputs(arrays)  # type: ignore[attr-defined]  # among them those that Python decides on
        raise error

    def _outputs(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs although a check has failed: zeros where a kernel then fails, as XLA has something, too."""
        values: dict[int, Any] = dict(zip(self.graph.inputs, arrays, strict=True))
        for node in self.graph.operations():
            try:
                values[node.id] = run_kernel(node.op, [values[i] for i in node.inputs], node.params)
            except Exception:
                nothing = tuple(np.zeros(a.shape, a.dtype) for a in node.results)
                values[node.id] = nothing if node.op.several else nothing[0]
        return [values[id] for id in self.graph.outputs]

    def compile(self) -> dict[str, float]:
        """Nothing is left to be done. Returns the seconds that lowering took."""
        return self.seconds

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = self.graph.bind(tuple(raw(a) for a in arrays_of(self.graph, args, kwargs)))
        return fill(self.graph.result, dict(zip(self.graph.outputs, self.dispatch(*given), strict=True)))

    def __repr__(self) -> str:
        return f"<HostExecutable of {self.graph!r}>"
