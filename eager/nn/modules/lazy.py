"""Modules that learn the sizes of their parameters from the first input. As `torch.nn.modules.lazy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eager.core.grad_mode import no_grad
from eager.core.interpreter import IMMEDIATE, interpreting
from eager.core.tensor import Tensor
from eager.nn.module import Module
from eager.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]

NOT_REPLICATED = (
    "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to correctly "
    "initialize the modules"
)


class LazyModuleMixin(Module if TYPE_CHECKING else object):
    """Makes a Module initialize its parameters at the first call, and become a `cls_to_become`.

    A subclass defines `initialize_parameters(*inputs)`, which materializes every uninitialized parameter.
    """

    cls_to_become: type[Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        for name, table in self._own_state().items():
            value = table[name]
            destination[prefix + name] = value if is_lazy(value) or keep_vars else value.detach()

    def _lazy_load_hook(self, state_dict: Any, prefix: str, *ignored: Any) -> None:
        """Give uninitialized parameters the shapes of those that are about to be loaded."""
        for table in (self._parameters, self._buffers):
            for name, value in table.items():
                given = state_dict.get(prefix + name)
                if is_lazy(value) and given is not None and not is_lazy(given):
                    value.materialize(given.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize the parameters for inputs like these. Raises NotImplementedError unless overridden."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether some parameter or buffer has no shape yet."""
        return any(is_lazy(value) for table in (self._parameters, self._buffers) for value in table.values())

    def _infer_parameters(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        with interpreting(IMMEDIATE):  # the numbers drawn now are the parameters, not a step of a traced program
            module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(NOT_REPLICATED)


def materialized(shape: tuple[int, ...], *tensors: Tensor | None) -> None:
    """Give all `tensors` that are not None, and uninitialized, that `shape`."""
    with no_grad():
        for t in tensors:
            if is_lazy(t):
                t.materialize(shape)  # type: ignore[union-attr]
