"""Options under which XLA compiles in a third of the time, for tests of what many programs mean.

The code is slower, and rounds otherwise in places. Every op under XLA's own options is in tests/compare/test_modes.py,
and whole programs are in tests/scenarios.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

OPTIONS: Mapping[str, Any] = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
    "xla_llvm_disable_expensive_passes": True,
}
FLAGS = " ".join(f"--{name}={str(value).lower()}" for name, value in OPTIONS.items())  # for XLA_FLAGS
NO_SYMBOL = "Failed to materialize symbols"  # XLA's error for code that calls a function that it does not have


@cache
def xla_has_half() -> bool:
    """Whether XLA can convert float16 on this processor: without F16C it would call functions that it does not have."""
    import jax
    import jax.numpy as jnp

    try:
        jax.jit(lambda x: (x.astype(jnp.float32) * 2).astype(x.dtype))(jnp.ones(8, jnp.float16))
    except jax.errors.JaxRuntimeError as error:
        return NO_SYMBOL not in str(error)
    return True
