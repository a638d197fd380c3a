"""Function transforms: `grad`, `vjp`, `jvp`, `vmap` and what is built from them. As `torch.func`."""

from __future__ import annotations

import importlib
from typing import Any

# public name -> module that has it, imported at first use
_LATER = {
    "vmap": "eager.func.mapping",
    **dict.fromkeys(("grad", "grad_and_value", "value_and_grad", "vjp"), "eager.func.reverse"),
    **dict.fromkeys(("jvp", "linearize"), "eager.func.forward"),
    **dict.fromkeys(("hessian", "jacfwd", "jacrev"), "eager.func.jacobians"),
    **dict.fromkeys(("functional_call", "stack_module_state"), "eager.func.modules"),
    "debug_unwrap": "eager.func.batching",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        value = globals()[name] = getattr(importlib.import_module(_LATER[name]), name)
        return value
    raise AttributeError(f"module 'eager.func' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
