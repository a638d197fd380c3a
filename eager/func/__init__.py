"""Function transforms: `grad`, `vjp`, `jvp`, `vmap` and what is built from them. As `torch.func`."""

from __future__ import annotations

from graphc.lazy import lazy

# public name -> module that has it, imported at first use
_LATER = {
    "vmap": "eager.func.mapping",
    **dict.fromkeys(
        "grad grad_and_value hessian jacfwd jacrev jvp linearize value_and_grad vjp".split(), "eager.func.derivatives"
    ),
    **dict.fromkeys(("functional_call", "functionalize", "stack_module_state"), "eager.func.modules"),
    "replace_all_batch_norm_modules_": "eager.nn.modules.batchnorm",
    "debug_unwrap": "eager.func.batching",
}

__getattr__, __dir__ = lazy(__name__, _LATER)
