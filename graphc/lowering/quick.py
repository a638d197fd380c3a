"""Programs that XLA compiles in a third of the time: for many that run once. They are slower, and round otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import jax

from graphc.lowering import stages
from graphc.scoped import attribute


def _known(name: str, value: Any) -> bool:
    """Whether this version of XLA has the option."""
    try:
        jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
    except jax.errors.JaxRuntimeError as error:
        if "No such compile option" not in str(error):
            raise
        return False
    return True


_WANTED: Mapping[str, Any] = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,  # until JAX 0.10
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_parallel_codegen_split_count": 1,
}
OPTIONS: dict[str, Any] = {name: value for name, value in _WANTED.items() if _known(name, value)}


def quickly() -> AbstractContextManager[None]:
    """Context: programs that are not strict are compiled so, unless something else has been asked for."""
    return attribute(stages, "PLAIN", OPTIONS if stages.PLAIN is None else stages.PLAIN)
