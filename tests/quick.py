"""Compiled programs that are there at once, for tests of what is done before and after XLA's part.

`OPTIONS` make XLA compile in a third of the time. `compilation` leaves XLA out: the graph that would be lowered runs on
NumPy. Every op is compiled in tests/lowering, with its gradients; the deep suite compiles all, with XLA's own options.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any, final

import jax
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir

from graphc.errors import NO_HALF
from graphc.lowering.executable import Executable
from graphc.lowering.quick import OPTIONS
from graphc.lowering.stages import NO_SYMBOL, Compilation
from graphc.ops.interpret import run_kernel

FLAGS = " ".join(f"--{name}={str(value).lower()}" for name, value in OPTIONS.items())  # for XLA_FLAGS


def shared(make: Callable[[], Any], programs: int = 100) -> Callable[[], Any]:
    """`make`, of which each result serves for so many calls."""
    found: list[Any] = []

    def given() -> Any:
        if not found:
            found.extend([make()] * programs)
        return found.pop()

    return given


def compiled_once(compile: Callable[..., Any], programs: int = 500) -> Callable[..., Any]:
    """`compile` of JAX, which has the latest `programs` at hand: two in five have been compiled before."""
    known: dict[tuple[Any, ...], Any] = {}

    def compiled(backend: Any, module: Any, devices: Any, options: Any, callbacks: Any) -> Any:
        if callbacks:  # which the text does not tell apart
            return compile(backend, module, devices, options, callbacks)
        text = module.operation.get_asm(enable_debug_info=False)
        key = text, options.SerializeAsString(), backend, tuple(devices)
        program = known.pop(key, None) or compile(backend, module, devices, options, callbacks)
        known[key] = program
        if len(known) > programs:
            del known[next(iter(known))]
        return program

    return compiled


if not os.environ.get("GRAPHC_TEST_XLA"):
    # To make an MLIR context, with all dialects, is half of lowering: programs are lowered in one after the other.
    if hasattr(mlir, "make_ir_context"):
        mlir.make_ir_context = shared(mlir.make_ir_context)
    if hasattr(compiler, "backend_compile_and_load"):
        compiler.backend_compile_and_load = compiled_once(compiler.backend_compile_and_load)


def lacks_half(error: BaseException) -> bool:
    """Whether a test fails for the want of float16 in XLA, by its error or a text with it."""
    text = str(error)
    return (NO_SYMBOL in text or NO_HALF.removeprefix("{name}: ") in text) and not xla_has_half()


@cache
def xla_has_half() -> bool:
    """Whether XLA can convert float16 on this processor: without F16C it would call functions that it does not have."""
    import jax.numpy as jnp

    try:
        jax.jit(lambda x: (x.astype(jnp.float32) * 2).astype(x.dtype))(jnp.ones(8, jnp.float16))
    except jax.errors.JaxRuntimeError as error:
        return NO_SYMBOL not in str(error)
    return True


@final
class OnNumpy:
    """What stands for the compiled program of an executable: its graph, run node by node on NumPy.

    Checks of the graph itself give a number, as XLA's do; what a check inside control flow finds is raised.
    """

    def __init__(self, executable: Executable):
        self._graph = executable._program.graph
        self._restore = executable._program._restore
        nodes = self._graph.nodes
        self._numbers = {n.id: k for k, n in enumerate(executable._checked) if nodes.get(n.id) is n}
        self._fails = executable.fails

    def memory_analysis(self) -> None:
        """As of a backend of XLA that does not tell."""

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        graph = self._graph
        values = dict(zip(graph.inputs, map(np.asarray, arrays), strict=True))
        failed = -1
        with np.errstate(all="ignore"):
            for node in graph.operations():
                operands = [values[i] for i in node.inputs]
                if failed < 0 and node.id in self._numbers and not node.op.check.ok(np, *operands, **node.params):
                    failed = self._numbers[node.id]
                try:
                    values[node.id] = run_kernel(node.op, operands, node.params)
                except Exception:
                    if failed < 0:
                        raise
                    values[node.id] = np.zeros(node.shape, node.dtype)  # XLA's are something, too
        given = [graph.inputs[self._restore[k]] if failed >= 0 and k in self._restore else id
                 for k, id in enumerate(graph.outputs)]  # fmt: skip
        outputs = [jax.device_put(np.array(values[id], graph.nodes[id].dtype, order="C")) for id in given]
        return (*outputs, jax.device_put(np.int32(failed))) if self._fails else tuple(outputs)


_BY_XLA = Executable._compilation


def compilation(executable: Executable) -> Compilation:
    """In place of `Executable._compilation`; XLA's where a result is more than an array."""
    graph = executable._program.graph
    if any(graph.nodes[id].op.several for id in graph.outputs):
        return _BY_XLA(executable)
    return Compilation(OnNumpy(executable), {"jax trace": 0.0, "lower": 0.0, "xla": 0.0})
