"""Modules around a module, of which the keys of a state dict do not tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from eager.core.parameter import Parameter
from eager.nn import Module

__all__ = ["Transparent", "bare"]

_attributes: list[str] = []  # under which the modules are kept


def bare(name: str) -> str:
    """The name of a parameter without the modules around its own."""
    return ".".join(part for part in name.split(".") if part not in _attributes)


class Transparent(Module):
    """A module around the one that is its attribute `INSIDE`, which answers what it is asked."""

    INSIDE: ClassVar[str]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "INSIDE" in vars(cls):
            _attributes.append(cls.INSIDE)

    def __init__(self, module: Module):
        super().__init__()
        setattr(self, self.INSIDE, module)
        self.register_state_dict_post_hook(_shorten)
        self.register_load_state_dict_pre_hook(_lengthen)

    @property
    def _inside(self) -> Any:
        return self._modules[self.INSIDE]

    def forward(self, *inputs: Any, **keywords: Any) -> Any:
        """What the module computes."""
        return self._inside(*inputs, **keywords)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if self.INSIDE not in self.__dict__.get("_modules", {}):  # while it is made
                raise
            return getattr(self._inside, name)

    def __getitem__(self, key: Any) -> Any:
        return self._inside[key]

    def _named_in(self) -> bool:
        """Whether the names of parameters have this module."""
        return False

    def named_parameters(self, *args: Any, **keywords: Any) -> Iterator[tuple[str, Parameter]]:
        """As of a module, by the names without the modules of this kind that are around."""
        hidden = "" if self._named_in() else f"{self.INSIDE}."
        for name, parameter in super().named_parameters(*args, **keywords):
            yield name.replace(hidden, ""), parameter


def _shorten(module: Any, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    _renamed(state, f"{prefix}{module.INSIDE}.", prefix)


def _lengthen(module: Any, state: dict[str, Any], prefix: str, *rest: Any) -> None:
    _renamed(state, prefix, f"{prefix}{module.INSIDE}.")


def _renamed(state: dict[str, Any], before: str, after: str) -> None:
    for key in [*state]:  # in their order, which checkpoints keep
        state[after + key[len(before) :] if key.startswith(before) else key] = state.pop(key)
