"""What a fork leaves to the child: one thread, the locks of the others, and an XLA that waits for threads for ever.

XLA cannot be started anew in such a child: a new client deadlocks or ends the process, and so does the end of the old
one. So the child does without. Compiled functions run eagerly there, with one warning; what needs XLA raises
ForkedError at once. A child of a process that has not used XLA yet has one of its own. Eager mode works in any child.

This module loads nothing, so that it is there before anybody forks.
"""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
import weakref
from collections.abc import Callable
from typing import Any, final

from graphc import errors

_BRIDGE = "jax._src.xla_bridge"  # has JAX's clients in `_backends`; without that we think that there are some
_OWN = ("jax", "jaxlib", "graphc", "eager", "compare")


@final
class _Process:
    """lost: whether this process was forked from one that had started XLA, and so has none."""

    def __init__(self):
        self.lost = False
        self.warned = False


process = _Process()
_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_in_child: list[Callable[[], None]] = []


def renewed(lock: Any) -> Any:
    """`lock`, of the module `threading`, which will be free in a child whatever thread holds it when that is forked."""
    _locks.add(lock)
    return lock


def in_child(fn: Callable[[], None]) -> None:
    """Call `fn` in each child that is forked from now on, when `process` is set."""
    _in_child.append(fn)


def refuse(what: str) -> None:
    """Raise ForkedError if this process has lost XLA, which `what` needs."""
    if process.lost:
        raise errors.ForkedError(errors.FORKED.format(what=what))


def warn() -> None:
    """Say once that compiled functions run eagerly."""
    if not process.warned:
        process.warned = True
        warnings.warn(errors.FORKED_EAGER, RuntimeWarning, stacklevel=3)


def xla_clients() -> dict[str, Any] | None:
    """The clients of XLA that JAX has started in this process; None if that cannot be told."""
    bridge = sys.modules.get(_BRIDGE)
    return {} if bridge is None else getattr(bridge, "_backends", None)


def refuse_import(module: str) -> None:
    """Raise ForkedError if the thread that was importing `module` has been lost in a fork."""
    if process.lost and _half_imported(module):
        refuse(f"the module {module}")


def _half_imported(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return getattr(spec, "_initializing", False)


def _after_in_child() -> None:
    for lock in list(_locks):
        if not getattr(lock, "_is_owned", bool)():  # by the thread that forks
            lock._at_fork_reinit()
    clients = xla_clients()
    # the child would wait for the thread that is importing
    importing = any(_half_imported(name) for name in list(sys.modules) if name.partition(".")[0] in _OWN)
    if clients is None or clients or importing:
        process.lost = True
        for client in (clients or {}).values():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))  # its end would wait for its threads
    for fn in _in_child:
        fn()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_in_child)
