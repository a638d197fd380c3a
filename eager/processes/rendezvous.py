"""Where processes meet: which of how many this one is, and the address at which rank 0 listens."""

from __future__ import annotations

import os
import socket
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from eager.processes.stores import FileStore

_KEY = "graphc/coordinator"
MISSING = "Error initializing torch.distributed using {scheme}:// rendezvous: {what}"
NOT_SET = "environment variable {name} expected, but not set"


class Meeting(NamedTuple):
    """Which of how many processes this one is, and where rank 0 listens: "host:port"."""

    rank: int
    size: int
    address: str


def meet(init_method: str | None, store: Any, size: int, rank: int, timeout: float) -> Meeting:
    """What `init_process_group` was given. Raises PyTorch's errors for what is missing."""
    if store is not None:
        if size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
        return Meeting(rank, size, _announced(store, rank, size))
    parts = urlsplit("env://" if init_method is None else init_method)
    schemes = {"env": _env, "tcp": _tcp, "file": _file}
    if parts.scheme not in schemes:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    rank = int(query.get("rank", rank))
    size = int(query.get("world_size", size))
    met = schemes[parts.scheme](parts, rank, size, timeout)
    if not 0 <= met.rank < met.size:
        raise ValueError(f"rank {met.rank} is not one of a world of {met.size} processes")
    return met


def _env(parts: Any, rank: int, size: int, timeout: float) -> Meeting:
    def variable(name: str) -> str:
        if name not in os.environ:
            raise ValueError(MISSING.format(scheme="env", what=NOT_SET.format(name=name)))
        return os.environ[name]

    rank = rank if rank >= 0 else int(variable("RANK"))
    size = size if size > 0 else int(variable("WORLD_SIZE"))
    return Meeting(rank, size, f"{variable('MASTER_ADDR')}:{int(variable('MASTER_PORT'))}")


def _given(scheme: str, rank: int, size: int) -> None:
    for name, value in (("rank", rank), ("world size", size)):
        if value < 0:
            raise ValueError(MISSING.format(scheme=scheme, what=f"{name} parameter missing"))


def _tcp(parts: Any, rank: int, size: int, timeout: float) -> Meeting:
    if not parts.port:
        raise ValueError(MISSING.format(scheme="tcp", what="port number missing"))
    _given("tcp", rank, size)
    return Meeting(rank, size, f"{parts.hostname}:{parts.port}")


def _file(parts: Any, rank: int, size: int, timeout: float) -> Meeting:
    if not parts.path:
        raise ValueError(MISSING.format(scheme="file", what="path missing"))
    _given("file", rank, size)
    store = FileStore(parts.netloc + parts.path, size, timeout=timeout)
    met = Meeting(rank, size, _announced(store, rank, size))
    if store.add(f"{_KEY}/read", 1) == size:  # a file that is left over would lead the next job astray
        os.unlink(store.path)
    return met


def _announced(store: Any, rank: int, size: int) -> str:
    """The address that rank 0 announces in a store."""
    if size == 1:
        return ""
    if rank == 0:
        store.set(_KEY, f"{_own_host()}:{free_port()}")
    return bytes(store.get(_KEY)).decode()


def _own_host() -> str:
    """A name by which others reach this machine: loopback where its own name is not known."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


def free_port() -> int:
    """A port that nobody listens at, now."""
    with socket.create_server(("", 0)) as server:
        return server.getsockname()[1]
