"""Weights that a hook computes before each `forward`: the base of `weight_norm`, `spectral_norm` and `prune`."""

from __future__ import annotations

from typing import Any, Self

from eager.nn.hooks import HookTable


class WeightHook:
    """A forward pre-hook that sets the attribute `name` of its module to `compute_weight(module)`."""

    name: str

    def compute_weight(self, module: Any) -> Any:
        """The weight, from what it is made of."""
        raise NotImplementedError

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))

    @classmethod
    def of(cls, module: Any, name: str) -> list[Self]:
        """The hooks of this kind on the weight `name` of `module`."""
        return [hook for hook in module._forward_pre_hooks.values() if isinstance(hook, cls) and hook.name == name]


def unhook(table: HookTable, function: Any) -> None:
    """Take the hook `function` out of a table of hooks."""
    for key in [key for key, hook in table.items() if hook == function]:  # a method is made anew
        del table[key]
