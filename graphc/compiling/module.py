"""A compiled module: the module itself, but for its call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from eager.nn import Module

if TYPE_CHECKING:
    from graphc.compiling.explanation import CompiledExplanation


@final
class CompiledModule(Module):
    """A module under `graphc.compile`, whose result is that of `compiled`. As PyTorch's `OptimizedModule`.

    `_orig_mod` is the module that was compiled; attributes are its attributes.
    """

    def __init__(self, module: Module, compiled: Any):
        super().__init__()
        object.__setattr__(self, "_compiled", compiled)
        self._modules["_orig_mod"] = module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's result, by the compiled program."""
        return self._compiled(*args, **kwargs)

    def explain(self) -> CompiledExplanation:
        """See `Compiled.explain`."""
        return self._compiled.explain()

    @property
    def graph(self) -> Any:
        """See `Compiled.graph`."""
        return self._compiled.graph

    @property
    def source(self) -> str:
        """See `Compiled.source`."""
        return self._compiled.source

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if "_orig_mod" not in self.__dict__.get("_modules", ()):  # a copy in the making
                raise
            return getattr(self._modules["_orig_mod"], name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._modules["_orig_mod"])})

    def __setattr__(self, name: str, value: Any) -> None:
        if "_modules" in self.__dict__ and "_orig_mod" in self._modules and name != "training":
            setattr(self._modules["_orig_mod"], name, value)
        else:
            super().__setattr__(name, value)
