"""Hooks: an ordered table of callables, and the handle that removes one of them."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple, final

_ids = itertools.count()


class Hook(NamedTuple):
    """A registered callable; `with_kwargs` passes it the keyword arguments too."""

    function: Callable[..., Any]
    with_kwargs: bool = False
    always_call: bool = False


class HookTable(OrderedDict[int, Hook]):
    """The hooks of one kind on one module, in calling order."""

    def register(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        handle = RemovableHandle(self)
        self[handle.id] = hook
        if prepend:
            self.move_to_end(handle.id, last=False)
        return handle

    def functions(self) -> OrderedDict[int, Any]:
        """The callables alone, as PyTorch's tables have them; the same dict each time."""
        made: OrderedDict[int, Any] = self.__dict__.setdefault("_functions", OrderedDict())
        made.clear()
        made.update((number, hook.function) for number, hook in self.items())
        return made


@final
class RemovableHandle:
    """Removes a hook: by `remove()`, or at the end of a `with` block."""

    def __init__(self, table: HookTable):
        self.id = next(_ids)
        self._table = weakref.ref(table)

    def remove(self) -> None:
        """Forget the hook; nothing happens the second time."""
        table = self._table()
        if table is not None:
            getattr(table, "successor", table).pop(self.id, None)

    def __getstate__(self) -> tuple[HookTable | None, int]:
        return self._table(), self.id

    def __setstate__(self, kept: Any) -> None:
        table, self.id, *_ = kept
        table = HookTable() if table is None else table
        self._table = weakref.ref(table) if isinstance(table, HookTable) else lambda: table

    def _as_pytorch_has_it(self, state: Any) -> Any:
        table, number = state
        return OrderedDict() if table is None else table.functions(), number

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def hooks_of(module: Any, kind: str) -> HookTable:
    """The module's own table of hooks of one kind; the class has an empty one, so that modules are made fast."""
    table = module.__dict__.setdefault(kind, HookTable())
    if not isinstance(table, HookTable):  # from a pickle of PyTorch
        table = module.__dict__[kind] = HookTable((number, Hook(function)) for number, function in table.items())
    return table
