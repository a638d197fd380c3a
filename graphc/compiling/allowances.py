"""How long calls may run eagerly before a program is made for them.

What a program would save is not known, but what has been spent is: it is made when eager calls have taken as long as
making one takes, or some times as long. So the total is never far from that of the better way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, final

from graphc.compiling.signature import Call
from graphc.compiling.specializations import Specialization

MOST = 256  # kinds of calls that are waited for


@final
class Allowances:
    """Seconds of eager calls that are left, by what a program would be for."""

    def __init__(self) -> None:
        self._left: dict[Any, float] = {}

    def __len__(self) -> int:
        return len(self._left)

    def __contains__(self, key: Any) -> bool:
        return key in self._left

    def begin(self, key: Any, latest: Specialization, times: float = 1) -> None:
        """Allow so many times what it took to make the latest program."""
        if len(self._left) >= MOST:
            self._left.pop(next(iter(self._left)))
        self._left[key] = times * (sum(latest.seconds.values()) + sum(latest.runner.forward.seconds.values()))

    def last(self, key: Any) -> bool:
        """Whether there is time left. It is forgotten if not."""
        if self._left.get(key, 0) > 0:
            return True
        self._left.pop(key, None)
        return False

    def run(self, key: Any, fn: Callable[..., Any], call: Call) -> Any:
        """The result of a call by `fn` itself."""
        start = time.perf_counter()
        try:
            return fn(*call.args, **call.kwargs)
        finally:
            if key in self._left:
                self._left[key] -= time.perf_counter() - start
