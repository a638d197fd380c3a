"""Recorder: collects the events of a profile. `record_function` makes one of a block of code."""

from __future__ import annotations

import functools
import itertools
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core.pytree import flatten
from eager.core.shown import ShownObject
from eager.core.tensor import Tensor
from eager.profiling.events import EventList, FunctionEvent
from eager.profiling.flops import counted_op, flops_of
from graphc.ops import Op

STACK = 5  # entries of a stack that are kept
_local = threading.local()
active: list[Recorder] = []  # the recorder that runs; none, or one


class Recorder:
    """Events, from `start` on, in microseconds since then.

    shapes: note the shapes of tensors among arguments. memory: and bytes of results. stack: and where calls come from.
    flops: and the scalar operations of ops.
    """

    def __init__(self, shapes: bool = False, memory: bool = False, stack: bool = False, flops: bool = False):
        self.shapes, self.memory, self.stack, self.flops = shapes, memory, stack, flops
        self.events: list[FunctionEvent] = []
        self._ids = itertools.count(1)
        self._start = time.perf_counter_ns()

    def _now(self) -> float:
        return (time.perf_counter_ns() - self._start) / 1e3

    def opened(self) -> list[FunctionEvent]:
        """The events of this thread that have not ended, innermost last."""
        if getattr(_local, "recorder", None) is not self:
            _local.recorder, _local.open = self, []
        return _local.open

    def open(
        self, name: str, arguments: Any = (), keywords: Any = types.MappingProxyType({}), annotation: bool = False
    ) -> FunctionEvent:
        """An event that begins now: a call with these arguments."""
        around = self.opened()
        about: dict[str, Any] = {"is_user_annotation": annotation}
        if self.shapes:
            about["input_shapes"] = [_shape(x) for x in (*arguments, *keywords.values())]
        if self.stack:
            about["stack"] = _callers()
        event = FunctionEvent(
            next(self._ids), name, threading.get_ident(), 0.0, around[-1] if around else None, **about
        )
        if self.flops and (op := counted_op(name)) is not None:
            event.call = op, arguments, keywords
        around.append(event)
        event.start = self._now()
        return event

    def counted(self, op: Op, shapes: list[tuple[int, ...]], flops: int, result: Tensor) -> None:
        """Hears of each op whose operations have been counted, with the shapes of its operands."""

    def open_node(self, name: str, node: Any) -> FunctionEvent:
        """An event that begins now: the visit of a node of the tape."""
        return self.open(name)

    def close(self, event: FunctionEvent, result: Any = None, only_tensors: bool = False) -> None:
        """End an event. With `only_tensors` it is dropped if it gave no tensor and nothing happened in it."""
        event.end = self._now()
        around = self.opened()
        while around and around.pop() is not event:  # those that an error has left open
            continue
        tensors = [x for x in flatten(result)[0] if isinstance(x, Tensor)] if self.memory or only_tensors else []
        if only_tensors and not tensors and not event.cpu_children:
            return
        if event.call is not None and not any(child.flops for child in event.cpu_children):
            (op, *given), event.call = event.call, None
            arguments, keywords = given
            event.flops, shapes = flops_of(op, arguments, keywords, result)
            if event.flops:
                self.counted(op, shapes, event.flops, result)
        if self.memory:
            event.own_bytes = sum(_allocated(x) for x in tensors)
        self.events.append(event)
        if event.cpu_parent is not None:
            event.cpu_parent.cpu_children.append(event)

    def list(self) -> EventList:
        """The events in the order of their starts."""
        ordered = sorted(self.events, key=lambda event: event.id)
        return EventList(ordered, profile_memory=self.memory, with_flops=self.flops)


def _shape(x: Any) -> list[Any]:
    if isinstance(x, Tensor):
        return list(x._d.shape)
    return [_shape(y) for y in x] if isinstance(x, (list, tuple)) and x and isinstance(x[0], Tensor) else []


def _allocated(x: Tensor) -> int:
    """Bytes of memory that `x` does not share; what a program has given has no array yet."""
    data = x._d
    return data.nbytes if data.__class__ is np.ndarray and data.base is None else 0


def _callers() -> list[str]:
    """Where the user's code has called from, innermost first: "file(line): function"."""
    found: list[str] = []
    frame: Any = sys._getframe(2)
    while frame is not None and len(found) < STACK:
        code = frame.f_code
        if not frame.f_globals.get("__name__", "").startswith(("eager.", "graphc.")) and code.co_filename[0] != "<":
            found.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back
    return found


class record_function(ShownObject):
    """Context, or decorator: an event of the name `name` in the profile that runs; nothing while none does.

    As `torch.profiler.record_function`.
    """

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        self._recorder = active[-1] if active else None
        self._event = None if self._recorder is None else self._recorder.open(self.name, annotation=True)
        return self

    def __exit__(self, *error: object) -> None:
        if self._recorder is not None and self._event is not None:
            self._recorder.close(self._event)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return recorded
