"""A lowered graph for other programs: StableHLO text, JAX's portable artifact, TensorFlow's GraphDef."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from graphc.errors import require
from graphc.ir.graph import Graph
from graphc.lowering.source import Source
from graphc.lowering.stages import is_wide, setting


def stablehlo(graph: Graph) -> str:
    """The StableHLO module, as text, that JAX makes of `graph`: a public function `main` of the graph's inputs.

    Its results are the graph's outputs from left to right; if the graph has run-time checks, then also the number of
    the first that failed, or -1.

    >>> "stablehlo.tanh" in stablehlo(Graph.parse("def f(x: f32[3]):\\n    v1: f32[3] = tanh(x)\\n    return v1\\n"))
    True
    """
    with setting(is_wide(graph)):
        return _jitted(graph).lower(*_structs(graph)).as_text()


def export(graph: Graph, platforms: Sequence[str] = ("cpu",)) -> bytearray:
    """`graph` as the bytes of a `jax.export` artifact, for these platforms ("cpu", "cuda", "rocm", "tpu").

    `jax.export.deserialize(data).call(*arrays)` runs it, in other versions of JAX and without graphc; results are as
    in `stablehlo`. For graphs with 64-bit types call it under `jax.enable_x64(True)`. Raises MissingExtraError if the
    optional dependency flatbuffers is not installed.
    """
    require("flatbuffers", "graphc.export", "export")
    from jax import export as portable

    with setting(is_wide(graph)):
        return portable.export(_jitted(graph), platforms=list(platforms))(*_structs(graph)).serialize()


def to_graphdef(graph: Graph) -> Any:
    """`graph` as TensorFlow's GraphDef, which TensorBoard draws: groups for scopes and what loops run,
    shapes, dtypes, the user's lines.

    Raises MissingExtraError if the optional dependency tensorboard is not installed.
    """
    from eager.utils.graphdef import graph_def

    return graph_def(graph)


def _jitted(graph: Graph) -> Any:
    function: Callable[..., tuple[Any, ...]] = Source(graph).function()

    def named(*arrays: Any) -> tuple[Any, ...]:
        return function(*arrays)

    named.__name__ = graph.name
    return jax.jit(named, keep_unused=True)


def _structs(graph: Graph) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in graph.input_avals()]
