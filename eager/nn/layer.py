"""Layer: a module that keeps the arguments that it is made with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eager.nn.module import Module

# arguments that only decide how others are made: a bias, say, becomes a parameter
NOT_KEPT = frozenset(("self", "__class__", "bias", "device", "dtype", "size_average", "reduce"))


class Layer(Module):
    """A module whose `__init__` begins with `self._keep(locals())`: each argument becomes an attribute.

    What classes of one family differ in are keywords of the class statement, `class Conv2d(_Conv, rank=2, ...)`:
    function: what `forward` calls; rank: the number of spatial dimensions; shown: what `extra_repr` says, as a format
    of the attributes; it may ask whether there is a {bias}.
    """

    _function: Callable[..., Any]
    _shown = ""
    rank: int

    def __init_subclass__(cls, function: Callable[..., Any] | None = None, rank: int | None = None,
                          shown: str | None = None, **keywords: Any) -> None:  # fmt: skip
        super().__init_subclass__(**keywords)
        if function is not None:
            cls._function = staticmethod(function)
        if rank is not None:
            cls.rank = rank
        if shown is not None:
            cls._shown = shown

    def _keep(self, arguments: dict[str, Any], buffers: Sequence[str] = ()) -> None:
        """Begin with `arguments`, the local variables of `__init__`, as attributes; some of them as buffers."""
        Module.__init__(self)
        for name, value in arguments.items():
            if name in buffers:
                self.register_buffer(name, value)
            elif name not in NOT_KEPT:
                setattr(self, name, value)

    def extra_repr(self) -> str:
        return self._shown.format(**{**vars(self), "bias": self._parameters.get("bias") is not None})


def unusual(module: Module, **usual: Any) -> str:
    """ ", name=value" for each attribute that has another value than the usual one."""
    values = {name: getattr(module, name) for name in usual}
    return "".join(f", {name}={value}" for name, value in values.items() if _differs(value, usual[name]))


def _differs(value: Any, usual: Any) -> bool:
    return value is not usual if isinstance(usual, bool) else value != usual
