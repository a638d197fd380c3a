"""JAX's own reverse mode of a lowered graph: an opinion on gradients that shares no rule with the op registry."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from graphc.ir.graph import Graph, Node
from graphc.lowering import stages
from graphc.lowering.source import in_float32, jax_kernel, narrowed
from graphc.lowering.stages import Compilation, compile_measured, half_precision, is_wide, setting
from graphc.ops import Op


@final
class ReverseMode:
    """One `jax.jit` program that returns a graph's outputs and, by `jax.vjp`, the gradients of some of its inputs.

    graph     the forward program
    wrt       positions of the inputs that the gradients are for
    seeded    positions of the outputs that get a cotangent; the others have cotangent zero
    recorded  ids of the nodes that gradients flow through (None: all)
    """

    def __init__(
        self, graph: Graph, wrt: Sequence[int], seeded: Sequence[int], recorded: Collection[int] | None = None
    ):
        self.graph = graph
        self._wrt, self._seeded, self._recorded = tuple(wrt), tuple(seeded), recorded
        self._wide = is_wide(graph)
        self._jitted = jax.jit(self._outputs_and_gradients, keep_unused=True, compiler_options=stages.PLAIN)

    def _forward(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        return interpret(self.graph, arrays, self._recorded)

    def _outputs_and_gradients(self, arrays: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, Any]:
        def seeded(*moved: Any) -> tuple[Any, Any]:
            given: list[Any] = list(arrays)
            for position, array in zip(self._wrt, moved, strict=True):
                given[position] = array
            outputs = self._forward(given)
            return tuple(outputs[k] for k in self._seeded), outputs

        _, back, outputs = jax.vjp(seeded, *(arrays[k] for k in self._wrt), has_aux=True)
        # JAX's cotangents of complex numbers are the conjugates of ours
        return outputs, tuple(map(jnp.conj, back(tuple(map(jnp.conj, cotangents)))))

    def __call__(self, arrays: Sequence[Any], cotangents: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """(outputs, gradients) as jax.Arrays, not awaited. Run-time checks are not carried out."""
        with setting(self._wide), half_precision(self.graph):
            return self._jitted(tuple(arrays), tuple(cotangents))

    def compile_measured(self, arrays: Sequence[Any], cotangents: Sequence[Any]) -> Compilation:
        """Compile for these arguments. Returns the seconds it took, and the memory that the program will take."""
        with setting(self._wide):
            return compile_measured(self._jitted, tuple(arrays), tuple(cotangents))


def interpret(graph: Graph, arrays: Sequence[Any], recorded: Collection[int] | None = None) -> tuple[Any, ...]:
    """The outputs of `graph`, run with JAX's kernels node by node, with the graphs inside it as functions."""
    values: dict[int, Any] = dict(zip(graph.inputs, arrays, strict=True))
    for node in graph.operations():
        value = _run_node(node, [values[i] for i in node.inputs])
        frozen = recorded is not None and node.id not in recorded
        values[node.id] = lax.stop_gradient(value) if frozen else value
    return tuple(values[id] for id in graph.outputs)


def op_by_op(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of `graph`, each operation by XLA calls of its own, which is awaited.

    Raises the error of a run-time check that fails, with the user's line.
    """
    with setting(is_wide(graph)), half_precision(graph):
        values: dict[int, Any] = dict(zip(graph.inputs, map(jnp.asarray, arrays), strict=True))
        for node in graph.operations():
            operands = [values[i] for i in node.inputs]
            check = node.check
            if check is not None and not check.ok(jnp, *_widened(node.op, operands), **node.params):
                raise check.failure(node.params, node.where or "unknown line")
            values[node.id] = jax.block_until_ready(_run_node(node, operands))
        return [np.asarray(values[id]) for id in graph.outputs]


def _run_node(node: Node, operands: Sequence[Any]) -> Any:
    """The result of `node` by JAX's kernel, with the graphs that it runs as functions."""
    _, kernel = jax_kernel(node.op, () if node.op.structured else operands)
    params = {name: _callable(value) for name, value in node.params.items()} if node.op.structured else node.params
    result = kernel(*_widened(node.op, operands), **params)
    if not any(in_float32(node.op, operands)):
        return result
    return narrowed(result, [a.dtype for a in node.results]) if node.op.several else result.astype(node.dtype)


def _widened(op: Op, operands: Sequence[Any]) -> list[Any]:
    """The operands of `op`, those in float32 that are to be."""
    halves = in_float32(op, operands)
    return [x.astype(np.float32) if half else x for x, half in zip(operands, halves, strict=True)]


def _callable(value: Any) -> Any:
    if isinstance(value, Graph):
        return lambda *arrays: interpret(value, arrays)
    return tuple(map(_callable, value)) if isinstance(value, tuple) else value


def vjp(
    graph: Graph,
    arrays: Sequence[Any],
    cotangents: Mapping[int, Any],
    wrt: Sequence[int],
    recorded: Collection[int] | None = None,
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Run `graph` on `arrays` under JAX and pull `cotangents` (by output position) back to the inputs number `wrt`.

    Returns (outputs, gradients) as ndarrays. Raises JAX's error where JAX has no derivative.
    """
    program = ReverseMode(graph, wrt, list(cotangents), recorded)
    outputs, gradients = program(arrays, list(cotangents.values()))
    return [np.asarray(a) for a in outputs], [np.asarray(g) for g in gradients]
