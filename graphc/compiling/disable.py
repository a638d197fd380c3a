"""`graphc.disable`: run everything eagerly."""

from __future__ import annotations

import os
from typing import final

from graphc import forking


class _Switch:
    """Whether compiled functions run as programs. They never do in a child that has lost XLA by a fork."""

    off = os.environ.get("GRAPHC_DISABLE", "") not in ("", "0")

    def set(self, off: bool) -> None:
        self.off = off or forking.process.lost


switch = _Switch()
forking.in_child(lambda: switch.set(switch.off))


@final
class disable:
    """From now on, functions under `graphc.compile` run eagerly; as a context, until its end.

    The environment variable GRAPHC_DISABLE=1 does the same for a whole process.

    >>> import eager as torch, graphc
    >>> f = graphc.compile(lambda x: print("runs") or x + 1)
    >>> f(torch.zeros(1)); f(torch.zeros(1))
    runs
    tensor([1.])
    tensor([1.])
    >>> with graphc.disable():
    ...     f(torch.zeros(1))
    runs
    tensor([1.])
    """

    def __init__(self):
        self._before = switch.off
        switch.set(True)

    def __enter__(self) -> disable:
        return self

    def __exit__(self, *error: object) -> None:
        switch.set(self._before)


def enable() -> None:
    """Undo `graphc.disable`."""
    switch.set(False)
