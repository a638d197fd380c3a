"""Work: a collective or a message that may still be under way. As `torch.distributed.Work`."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from eager.processes.futures import Future


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
