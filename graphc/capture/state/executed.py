"""A walk that follows the code of a function only when a trace enters it.

From a model of a large library, nearly all of that library can be reached, while few of its functions run. What is
read by code that does not run cannot change what a trace does. So each function waits until it is called, and what it
reads is looked at then, before its first line.
"""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any, final

from eager.core.interpreter import IMMEDIATE, interpreting
from graphc.capture.state.owners import is_user_code
from graphc.capture.state.places import Inside, Path, Place
from graphc.capture.state.reachability import Reachability


def can_watch() -> bool:
    """Whether Python tells of calls: not while a profiler listens."""
    return sys.getprofile() is None


MUTABLE = (list, dict, set, deque)


@final
class ExecutedReachability(Reachability):
    """What the functions reach that are called while it is `watching`; and `known` places, before the first call."""

    def __init__(self, known: Iterable[tuple[type[Place], Any, Any, Path]] = ()) -> None:
        super().__init__()
        self._contents: dict[int, Place] = {}  # of containers, before the trace has put its own numbers there
        for kind, owner, key, path in known:
            if kind is not Inside:
                self._place(kind, owner, key, path)
                if isinstance(owner, MUTABLE):
                    self._contents[id(owner)] = Inside(owner, "", path)
        self._waiting: dict[CodeType, dict[tuple[int, int], Callable[[], None]]] = {}
        self._entered: set[CodeType] = set()

    def _function(
        self,
        fn: FunctionType,
        path: Path,
        owner: tuple[Any, Path] | None,
        positional: tuple[Any, ...] = (),
        keywords: dict[str, Any] | None = None,
    ) -> None:
        def follow() -> None:
            super(ExecutedReachability, self)._function(fn, path, owner, positional, keywords)

        code = fn.__code__
        if code in self._entered or not is_user_code(code):  # a library's function is what it was made from
            follow()
        else:
            self._waiting.setdefault(code, {}).setdefault((id(fn), id(owner[0]) if owner else 0), follow)

    def _place(self, kind: type[Place], owner: Any, key: Any, path: Path, guarded: bool = True) -> Place:
        if kind is Inside and (content := self._contents.pop(id(owner), None)) is not None:
            content.path, self._places[id(owner), key, kind] = path, content
        # what is appended to a container is not known before it is, so that its content counts
        return super()._place(kind, owner, key, path, guarded or kind is Inside)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Follow the functions that are called inside the block."""
        sys.setprofile(self._noticed)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _noticed(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "call" and code in self._waiting:
            self._entered.add(code)
            with interpreting(IMMEDIATE):
                for follow in self._waiting.pop(code).values():
                    follow()
                self.run()
