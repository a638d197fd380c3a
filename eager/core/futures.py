"""Results that come later. As `torch.futures`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
S = TypeVar("S")
TWICE = "Attempting to mark a completed Future as complete again. Note that a Future can only be marked completed once."
NOT_YET = "Future.value(): the Future has no value yet. Remedy: future.wait() waits for it."
IN_CALLBACK = "Got the following error when running the callback: {}: {}"


class Future(Generic[T]):
    """A result that another thread, or a later line, sets once. `devices` are accepted: memory is the CPU's."""

    def __init__(self, *, devices: Iterable[Any] | None = None):
        self._changed = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: Exception | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    def done(self) -> bool:
        """Whether there is a result, or an exception."""
        return self._done

    def wait(self) -> T:
        """The result, as soon as it is there. Raises the exception that was set."""
        with self._changed:
            self._changed.wait_for(self.done)
        return self.value()

    def value(self) -> T:
        """The result. Raises the exception that was set, RuntimeError if there is neither yet."""
        if not self._done:
            raise RuntimeError(NOT_YET)
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    def set_result(self, result: T) -> None:
        """Complete with a result. RuntimeError if it is complete."""
        self._complete(result, None)

    def set_exception(self, result: Exception) -> None:
        """Complete with an exception, for those who wait. RuntimeError if it is complete."""
        assert isinstance(result, Exception), f"{result} is of type {type(result)}, not an Exception."
        self._complete(None, result)

    def _complete(self, value: Any, error: Exception | None) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError(TWICE)
            self._value, self._error, self._done = value, error, True
            waiting, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in waiting:
            callback(self)

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback(self)` once it is complete: at once if it is."""
        with self._changed:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A Future of what `callback(self)` gives, called once this one is complete."""
        following: Future[S] = Future()

        def run(completed: Future[T]) -> None:
            try:
                result = callback(completed)
            except Exception as error:
                following.set_exception(RuntimeError(IN_CALLBACK.format(type(error).__name__, error)))
            else:
                following.set_result(result)

        self.add_done_callback(run)
        return following


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A Future of the list itself, complete when all of them are."""
    collected: Future[list[Future[Any]]] = Future()
    left, lock = len(futures), threading.Lock()

    def count(_: Future[Any]) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            collected.set_result(futures)

    for future in futures:
        future.add_done_callback(count)
    if not futures:
        collected.set_result(futures)
    return collected


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The results of all. Raises the first exception."""
    return [future.value() for future in collect_all(futures).wait()]
