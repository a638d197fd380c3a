"""Bytes from one process to others, by the key-value store of JAX's coordination service.

A message waits there until it is read, so senders never wait, whatever the order of sends and receives. Messages of one
kind are counted on both sides: the n-th that is received is the n-th that was sent.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from eager.processes.errors import DistStoreError
from eager.processes.world import ProcessGroup, world

_ROOT = "graphc/mail"
_PATIENCE = 0.5  # seconds that a wait keeps Python from handling signals
_PAUSE = 0.005

# how many messages were sent and received, by kind; each transport begins anew
_counts: dict[Any, Counter[str]] = {}


def _counted() -> Counter[str]:
    if world.transport not in _counts:
        _counts.clear()
        _counts[world.transport] = Counter()
    return _counts[world.transport]


def upcoming(kind: str) -> int:
    """The number of the next message of a kind, in this process."""
    return _counted()[kind] + 1


def number(kind: str) -> int:
    """The same, which is then no longer the next."""
    _counted()[kind] += 1
    return _counted()[kind]


def kind_of(what: str, group: ProcessGroup, source: int, target: Any, tag: int = 0) -> str:
    """The messages of `source` to `target` in a group, by their numbers in the world."""
    return f"{_ROOT}/{what}/{'-'.join(map(str, group.ranks))}/{source}/{target}/{tag}"


def post(key: str, value: bytes) -> None:
    """Send a message."""
    world.transport.put(key, value)


def take(key: str, readers: int, seconds: float, label: str) -> bytes:
    """Wait for a message that so many processes read; the last of them deletes it. DistBackendError if none comes."""
    transport, end = world.transport, time.monotonic() + seconds
    while True:
        try:
            value = transport.get(key, min(_PATIENCE, seconds))
            break
        except DistStoreError:
            if time.monotonic() >= end:
                raise transport.overdue(label, seconds) from None
    _has_read(key, readers)
    return value


def _has_read(key: str, readers: int) -> None:
    transport = world.transport
    if readers == 1:
        transport.delete(key)
    elif transport.count(f"{key}/read") == readers:
        transport.delete(key)
        transport.delete(f"{key}/read")


def take_any(keys: Sequence[str], seconds: float, label: str) -> tuple[int, bytes]:
    """The first message under one of `keys` to come: which, and what it says."""
    transport, end = world.transport, time.monotonic() + seconds
    while True:
        for k, key in enumerate(keys):
            value = transport.try_get(key)
            if value is not None:
                transport.delete(key)
                return k, value
        if time.monotonic() >= end:
            raise transport.overdue(label, seconds)
        time.sleep(_PAUSE)
