"""Options under which XLA compiles in a third of the time, for tests of what many programs mean.

The code is slower, and rounds otherwise in places. Every op under XLA's own options is in tests/compare/test_modes.py,
and whole programs are in tests/scenarios.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OPTIONS: Mapping[str, Any] = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
    "xla_llvm_disable_expensive_passes": True,
}
FLAGS = " ".join(f"--{name}={str(value).lower()}" for name, value in OPTIONS.items())  # for XLA_FLAGS
