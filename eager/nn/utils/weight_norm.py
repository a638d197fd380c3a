"""The older `weight_norm`, by a hook. As `torch.nn.utils.weight_norm`."""

from __future__ import annotations

import warnings
from typing import Any

from eager.core.parameter import Parameter
from eager.nn.functions.operators import norm_except_dim
from eager.nn.parameter import is_lazy
from eager.nn.utils.parametrizations import with_norm
from eager.nn.utils.weight_hooks import WeightHook, unhook

DEPRECATED = "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`."
LAZY = (
    "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy forward before "
    "applying weight normalization"
)


class WeightNorm(WeightHook):
    """Sets the weight `name` to `<name>_v`, with its slices along `dim` scaled to the norms `<name>_g`."""

    def __init__(self, name: str, dim: int | None):
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Any:
        """g v / |v|."""
        return with_norm(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Train the lengths and the directions of the slices of a weight apart, as `<name>_g` and `<name>_v`; warns.

    RuntimeError for a weight that already is so, ValueError for one without a shape.
    """
    warnings.warn(DEPRECATED, FutureWarning, stacklevel=2)
    if WeightNorm.of(module, name):
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    weight = getattr(module, name)
    if is_lazy(weight):
        raise ValueError(LAZY)
    hook = WeightNorm(name, dim)
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, 2, hook.dim).data))
    module.register_parameter(name + "_v", Parameter(weight.data))
    hook(module, ())
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Make the weight a parameter again. ValueError unless it is under `weight_norm`."""
    for hook in WeightNorm.of(module, name):
        weight = hook.compute_weight(module)
        for attribute in (name, name + "_g", name + "_v"):
            delattr(module, attribute)
        setattr(module, name, Parameter(weight.data))
        unhook(module._forward_pre_hooks, hook)
        return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
