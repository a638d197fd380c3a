"""Scopes: the path of the module in which a node was made."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, final

from graphc.ir import Builder


@final
class Scopes:
    """The modules whose forward is running in one trace."""

    def __init__(self, builder: Builder):
        self._builder = builder
        self._modules: list[Any] = []  # outermost first

    @contextlib.contextmanager
    def inside(self, module: Any) -> Iterator[None]:
        """See `eager.core.interpreter.Interpreter`: nodes get the path of the module as their scope."""
        builder, outer = self._builder, self._builder.scope
        owner = self._modules[-1] if self._modules else None
        children = () if owner is None else owner._modules.items()
        name = next((name for name, child in children if child is module), "")
        if not name and owner is not None:  # a grandchild, as of a ModuleList, or one from elsewhere
            name = next((path for path, child in owner.named_modules() if child is module), type(module).__name__)
        builder.scope = f"{outer}.{name}" if outer and name else outer or name
        self._modules.append(module)
        try:
            yield
        finally:
            self._modules.pop()
            builder.scope = outer
