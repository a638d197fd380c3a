"""The names of `torch._dynamo` that training programs use, as those of `torch.compiler`; settings have no effect."""

from types import SimpleNamespace
from typing import Any

from eager.compiling import compiled
from eager.compiling.compiled import (
    InvalidBackend,
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)

__all__ = [
    "allow_in_graph", "assume_constant_result", "config", "disable", "exc", "is_compile_supported", "is_compiling",
    "list_backends", "mark_static_address", "optimize", "reset",
]  # fmt: skip

config = SimpleNamespace(
    suppress_errors=False, verbose=False, cache_size_limit=8, recompile_limit=8, accumulated_recompile_limit=256,
    optimize_ddp=True, automatic_dynamic_shapes=True, capture_scalar_outputs=False,
)  # fmt: skip
exc = SimpleNamespace(InvalidBackend=InvalidBackend)


def __getattr__(name: str) -> Any:
    if name == "OptimizedModule":  # loaded when asked for: it is the compiler's
        from graphc.compiling.module import CompiledModule

        return CompiledModule
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def is_compile_supported(device_type: str) -> bool:
    """True: programs compile for each device. As `torch._dynamo.utils.is_compile_supported`."""
    return True


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Does nothing: compiled programs take arrays wherever they are."""


def optimize(backend: str = "inductor", *, nopython: bool = False, dynamic: bool | None = None):
    """The older spelling of `torch.compile`, as a decorator."""
    return compiled.compile(backend=backend, fullgraph=nopython, dynamic=dynamic)
