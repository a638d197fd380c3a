"""Hooks: an ordered table of callables, and the handle that removes one of them."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, final

from eager.core.shown import ShownObject

_ids = itertools.count()


class Hook(NamedTuple):
    """A registered callable; `with_kwargs` passes it the keyword arguments too."""

    function: Callable[..., Any]
    with_kwargs: bool = False
    always_call: bool = False


class HookTable(OrderedDict[int, Callable[..., Any]]):
    """The hooks of one kind on one module, in calling order: number -> callable, as PyTorch's tables have them.

    with_kwargs, always_call: the numbers of those for which that holds.
    """

    def __init__(self, functions: Any = (), with_kwargs: Iterable[int] = (), always_call: Iterable[int] = ()):
        super().__init__(functions)
        self.with_kwargs, self.always_call = set(with_kwargs), set(always_call)

    def register(self, function: Callable[..., Any], prepend: bool = False, with_kwargs: bool = False,
                 always_call: bool = False) -> RemovableHandle:  # fmt: skip
        handle = RemovableHandle(self)
        self[handle.id] = function
        if with_kwargs:
            self.with_kwargs.add(handle.id)
        if always_call:
            self.always_call.add(handle.id)
        if prepend:
            self.move_to_end(handle.id, last=False)
        return handle

    def __repr__(self) -> str:
        return repr(OrderedDict(self))

    def functions(self) -> OrderedDict[int, Any]:
        """The hooks in a plain dict, for pickles that PyTorch reads; the same dict each time."""
        made: OrderedDict[int, Any] = self.__dict__.setdefault("_functions", OrderedDict())
        made.clear()
        made.update(self)
        return made


def marked(table: Mapping[int, Any], field: str) -> dict[int, bool]:
    """The hooks of a table for which a field of Hook holds, as PyTorch has them in a table of its own."""
    return OrderedDict((number, True) for number in table if number in getattr(table, field, ()))


def calls(*tables: Mapping[int, Callable[..., Any]]) -> list[Hook]:
    """The hooks of tables one after the other. A table that a user has put there is a plain dict."""
    return [
        Hook(function, number in getattr(table, "with_kwargs", ()), number in getattr(table, "always_call", ()))
        for table in tables
        for number, function in table.items()
    ]


@final
class RemovableHandle(ShownObject):
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
        table = module.__dict__[kind] = HookTable(table)
    return table
