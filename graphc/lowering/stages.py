"""What programs have in common in JAX: 64-bit types where they are meant, and the stages of compilation."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, NamedTuple

import jax
import numpy as np

from eager.surface.runtime import get_float32_matmul_precision
from graphc.errors import NO_HALF, ProcessorError
from graphc.ir.graph import Graph
from graphc.ir.structure import every_node
from graphc.ops.dtypes import FLOAT16

PLAIN: dict[str, Any] | None = None  # options of programs that are not strict: XLA's own
NO_SYMBOL = "Failed to materialize symbols"  # XLA's error for code that calls a function that it does not have
_PRECISIONS = {"highest": "highest", "high": "tensorfloat32", "medium": "bfloat16"}  # PyTorch's names and JAX's
_WIDE = {np.dtype(t) for t in (np.int64, np.uint64, np.float64, np.complex128)}


def is_wide(graph: Graph) -> bool:
    """Whether `graph` touches a 64-bit type, which JAX narrows unless it is told not to."""
    return not _WIDE.isdisjoint(_dtypes(graph))


def _dtypes(graph: Graph) -> set[np.dtype]:
    """The dtypes of what `graph` computes."""
    return {aval.dtype for node in every_node(graph) for aval in node.results}


def setting(wide: bool, device: Any = None) -> AbstractContextManager[Any]:
    """The context to trace, compile and call a program in: 64-bit types on if `wide`, and a default device."""
    if device is None:  # a stack costs 3 us, and this is part of each call
        return jax.enable_x64(True) if wide else nullcontext()
    stack = ExitStack()
    if wide:
        stack.enter_context(jax.enable_x64(True))
    stack.enter_context(jax.default_device(device))
    return stack


@contextmanager
def half_precision(graph: Graph) -> Iterator[None]:
    """Context: XLA's error for code that calls a conversion of float16 which it does not have is a ProcessorError."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if NO_SYMBOL in str(error) and FLOAT16 in _dtypes(graph):
            raise ProcessorError(NO_HALF.format(name=graph.name)) from error
        raise


def matmul_precision() -> str | None:
    """How exact products of float32 are where a device would round their operands: what is asked of it by
    `torch.set_float32_matmul_precision`. None where there is only the CPU, which does not.

    XLA's own choice on such devices is TensorFloat-32, of 10 bits.
    """
    return None if jax.default_backend() == "cpu" else _PRECISIONS[get_float32_matmul_precision()]


def default_device() -> Any:
    """The device that programs run on unless another is named: JAX's setting, or the first one of this process."""
    default = getattr(jax.config, "jax_default_device", None)
    return jax.local_devices(backend=default)[0] if default is None or isinstance(default, str) else default


def forget_programs() -> None:
    """Drop all that JAX keeps of programs: those that are still used are compiled again.

    JAX keeps about 1.5 MB for each program of a dozen ops, also after the last reference to it has gone.
    """
    jax.clear_caches()


class Figures(NamedTuple):
    """Bytes that a program takes as XLA has laid it out: `jax.stages.Compiled.memory_analysis`."""

    arguments: int
    outputs: int
    aliased: int
    temporaries: int

    @property
    def peak(self) -> int:
        """What is taken at once: what is written to donated arguments takes no memory of its own."""
        return self.arguments + self.outputs - self.aliased + self.temporaries


def figures_of(program: Any) -> Figures | None:
    """The figures of a compiled program; None where the backend does not tell."""
    plan = program.memory_analysis()
    if plan is None:
        return None
    sizes = plan.argument_size_in_bytes, plan.output_size_in_bytes, plan.alias_size_in_bytes, plan.temp_size_in_bytes
    return Figures(*sizes)


class Compilation(NamedTuple):
    """A compiled program, and what it took.

    program  jax.stages.Compiled
    seconds  {"jax trace": ..., "lower": ..., "xla": ...}
    """

    program: Any
    seconds: dict[str, float]

    @property
    def memory(self) -> int | None:
        """Bytes of results and temporaries, as XLA has laid them out; None where the backend does not tell."""
        found = figures_of(self.program)
        return None if found is None else found.peak - found.arguments


# of a program that is only laid out, which XLA does before it makes machine code
PLANNED: Mapping[str, Any] = {"xla_backend_optimization_level": 0}


def compile_measured(jitted: Any, *arguments: Any, options: Mapping[str, Any] | None = None) -> Compilation:
    """Compile for `arguments` now, with these `options` of XLA's besides those that `jitted` has."""
    seconds: dict[str, float] = {}
    stage: Any = jitted
    last = () if options is None else (options,)
    for name, method, given in (("jax trace", "trace", arguments), ("lower", "lower", ()), ("xla", "compile", last)):
        start = time.perf_counter()
        stage = getattr(stage, method)(*given)
        seconds[name] = time.perf_counter() - start
    return Compilation(stage, seconds)
