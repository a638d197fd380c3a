"""Results that are not there yet, also of collectives and messages. As `torch.futures` and `torch.distributed.Work`."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

__all__ = ["Future", "collect_all", "wait_all"]

_MISSING = object()
TWICE = "Attempting to mark a completed Future as complete again. Note that a Future can only be marked completed once."
IN_CALLBACK = "Got the following error when running the callback: {}: {}"


class Future:
    """A result that somebody sets, or that is computed when it is waited for (`source`). As `torch.futures.Future`."""

    def __init__(self, *, devices: Any = None, source: Callable[[], Any] | None = None):
        self._source = source
        self._condition = threading.Condition(threading.RLock())
        self._result: Any = _MISSING
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], Any]] = []

    def done(self) -> bool:
        """Whether the result, or an error, is there."""
        return self._result is not _MISSING or self._error is not None

    def wait(self) -> Any:
        """The result, when it is there. Raises the error that it ended with."""
        with self._condition:
            if self._source is not None and not self.done():
                source, self._source = self._source, None
                self._settle(source)
            self._condition.wait_for(self.done)
        return self.value()

    def value(self) -> Any:
        """The result. Raises the error that it ended with, RuntimeError if neither is there."""
        if self._error is not None:
            raise self._error
        if self._result is _MISSING:
            raise RuntimeError("Future value requested before it is complete. Remedy: wait()")
        return self._result

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """The result of `callback(self)`, which is called once this is done. As `torch.futures.Future.then`."""
        if self._source is not None and not self.done():
            return Future(source=lambda: _called(callback, self._finished()))
        following = Future()
        self.add_done_callback(lambda done: following._settle(lambda: _called(callback, done)))
        return following

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Call `callback(self)` when this is done; at once if it is."""
        with self._condition:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback(self)

    def set_result(self, result: Any) -> None:
        """Give the result. RuntimeError for a second one."""
        self._end(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Give the error that `wait` is to raise."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._end(_MISSING, result)

    def _finished(self) -> Future:
        with suppress(Exception):  # which the callback meets when it asks for the value
            self.wait()
        return self

    def _settle(self, compute: Callable[[], Any]) -> None:
        try:
            result = compute()
        except Exception as error:
            self._end(_MISSING, error)
        else:
            self._end(result, None)

    def _end(self, result: Any, error: BaseException | None) -> None:
        with self._condition:
            if self.done():
                raise RuntimeError(TWICE)
            self._result, self._error = result, error
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for callback in callbacks:
            callback(self)


def _called(callback: Callable[[Future], Any], done: Future) -> Any:
    try:
        return callback(done)
    except Exception as error:
        raise RuntimeError(IN_CALLBACK.format(type(error).__name__, error)) from error


def collect_all(futures: Sequence[Future]) -> Future:
    """A future of `futures`, done when all of them are. As `torch.futures.collect_all`."""
    return Future(source=lambda: [future._finished() for future in futures])


def wait_all(futures: Sequence[Future]) -> list[Any]:
    """The results of all. Raises the first error among them. As `torch.futures.wait_all`."""
    return [future.wait() for future in collect_all(futures).wait()]


class Work:
    """What `async_op=True` returns. Results are in the tensors once `wait` has returned.

    future    of the result, None if it is there
    finish    called with the result, once
    """

    def __init__(self, transport: Any = None, future: Any = None, label: str = "", timeout: float = 0.0,
                 finish: Callable[[Any], None] | None = None, results: Any = None):  # fmt: skip
        self._transport, self._future, self._label = transport, future, label
        self._timeout, self._finish, self._results = timeout, finish, results

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        """Wait until it is done. Raises DistBackendError if it failed, or the others did not come in time."""
        if self._future is not None:
            seconds = self._timeout if timeout is None else timeout.total_seconds()
            result = self._transport.result(self._future, self._label, seconds)
            self._future = None
            if self._finish is not None:
                self._finish(result)
        return True

    def synchronize(self) -> None:
        """The same as `wait`."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether it is done; then its results are in the tensors."""
        if self._future is not None and self._future.done() and self._future.exception() is None:
            self.wait()
        return self._future is None or self._future.done()

    def is_success(self) -> bool:
        """Whether it is done, and without an error."""
        return self._future is None or (self._future.done() and self._future.exception() is None)

    def exception(self) -> BaseException | None:
        """What it has failed with, if it is done and has."""
        return self._future.exception() if self._future is not None and self._future.done() else None

    def get_future(self) -> Future:
        """A future of the list of the tensors that the results are in."""
        return Future(source=self.result)

    def result(self) -> Any:
        """The tensors that the results are in."""
        self.wait()
        return self._results
