"""Layer: a module that keeps the arguments that it is made with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from inspect import Parameter
from typing import Any

from eager.nn import functional as F
from eager.nn.module import Module

# arguments that only decide how others are made: a bias, say, becomes a parameter
NOT_KEPT = frozenset(("self", "__class__", "bias", "device", "dtype", "size_average", "reduce"))
DATA = {1: "signals (N, C, L)", 2: "images (N, C, H, W)", 3: "volumes (N, C, D, H, W)"}  # by rank


class Layer(Module):
    """A module whose `__init__` begins with `self._keep(locals())`: each argument becomes an attribute.

    What classes of one family differ in are keywords of the class statement, `class Conv2d(_Conv, rank=2, ...)`:
    function: what `forward` calls; unless there is one, `forward` takes what that function needs, and gives to it what
    the layer was made with; rank: the number of spatial dimensions; shown: what `extra_repr` says, as a format of the
    attributes; it may ask whether there is a {bias}.
    """

    _function: Callable[..., Any]
    _shown = ""
    rank: int

    def __init_subclass__(cls, function: Callable[..., Any] | None = None, rank: int | None = None,
                          shown: str | None = None, **keywords: Any) -> None:  # fmt: skip
        super().__init_subclass__(**keywords)
        if function is not None:
            cls._function = staticmethod(function)
            if cls.forward is Module.forward:
                cls.forward = _forward(function, inspect.signature(cls.__init__).parameters.keys() - NOT_KEPT)
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
        return self._shown.format(**{**vars(self), "bias": getattr(self, "bias", None) is not None})


def _forward(function: Callable[..., Any], kept: Collection[str]) -> Callable[..., Any]:
    """The `forward` of a layer that has kept these arguments: written out, as it is called often.

    Its code has the name of this file, so that it counts as code of this library.
    """
    inputs, given, behind_a_gap = [], [], False
    for name, parameter in inspect.signature(function).parameters.items():
        needed = parameter.default is Parameter.empty
        if name in kept or (needed and name == "weight"):
            by_name = behind_a_gap or parameter.kind is Parameter.KEYWORD_ONLY
            given.append(f"{name}=self.{name}" if by_name else f"self.{name}")
        elif needed:
            inputs.append(name)
            given.append(name)
        else:
            behind_a_gap = True
    head, call = f"def forward(self, {', '.join(inputs)}):", f"self._function({', '.join(given)})"
    scope: dict[str, Any] = {}
    exec(compile(f"{head}\n    return {call}", __file__, "exec"), scope)
    return scope["forward"]


def of_each_rank(base: type[Layer], does: str, function: str = "", ranks: Sequence[int] = (1, 2, 3)) -> list[Any]:
    """The layers of a family, for signals, images and volumes: `_MaxPool` has MaxPool1d, MaxPool2d and MaxPool3d.

    function: what they call, without its rank: "max_pool" for `F.max_pool1d` and so on; "" if `base` says it.
    """
    name = base.__name__.removeprefix("_")
    return [
        type(f"{name}{rank}d", (base,), {"__doc__": f"{does} {DATA[rank]}.", "__module__": base.__module__},
             rank=rank, function=getattr(F, f"{function}{rank}d") if function else None)
        for rank in ranks
    ]  # fmt: skip


def unusual(module: Module, **usual: Any) -> str:
    """ ", name=value" for each attribute that has another value than the usual one."""
    values = {name: getattr(module, name) for name in usual}
    return "".join(f", {name}={value}" for name, value in values.items() if _differs(value, usual[name]))


def _differs(value: Any, usual: Any) -> bool:
    return value is not usual if isinstance(usual, bool) else value != usual
