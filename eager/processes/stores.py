"""Stores: keys and bytes that several processes read and write. As PyTorch's `Store` classes.

A store is a table and a way to it. `_COMMANDS` says what may be done to a table, each at once; a class says where the
table lies: in this process (HashStore), in a file (FileStore), in a process that listens (TCPStore).
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import socket
import socketserver
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from eager.processes.errors import DistNetworkError, DistStoreError

_TIMEOUT = 300.0
_LONGEST_PAUSE = 0.05  # seconds between two looks at a table

Table = dict[str, str]  # values are bytes, decoded as Latin-1: so that JSON can hold them


def _add(table: Table, key: str, amount: int) -> int:
    value = int(table.get(key, "0")) + amount
    table[key] = str(value)
    return value


def _compare_set(table: Table, key: str, expected: str, desired: str) -> str:
    if table.get(key, "") == expected and (key in table or not expected):
        table[key] = desired
    return table.get(key, expected)


_COMMANDS: Mapping[str, Callable[..., Any]] = {
    "set": lambda table, key, value: table.__setitem__(key, value),
    "get": lambda table, key: table.get(key),
    "add": _add,
    "append": lambda table, key, value: table.__setitem__(key, table.get(key, "") + value),
    "check": lambda table, keys: all(key in table for key in keys),
    "delete_key": lambda table, key: table.pop(key, None) is not None,
    "compare_set": _compare_set,
    "list_keys": lambda table: sorted(table),
}


def _text(value: Any) -> str:
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"set(): incompatible function arguments: a value must be str or bytes, not {type(value)}")
    return value.encode().decode("latin-1") if isinstance(value, str) else value.decode("latin-1")


def _bytes(value: str) -> bytes:
    return value.encode("latin-1")


class Store:
    """Keys and bytes. As `torch.distributed.Store`; subclasses say where they are."""

    def __init__(self, timeout: float = _TIMEOUT):
        self._seconds = timeout

    def _do(self, command: str, *arguments: Any) -> Any:
        """Do one of `_COMMANDS` to the table."""
        raise NotImplementedError(f"{type(self).__name__} is no store by itself")

    @property
    def timeout(self) -> datetime.timedelta:
        """How long `get` and `wait` wait."""
        return datetime.timedelta(seconds=self._seconds)

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """Change how long `get` and `wait` wait."""
        self._seconds = timeout.total_seconds()

    def set(self, key: str, value: str | bytes) -> None:
        """Keep `value` under `key`."""
        self._do("set", key, _text(value))

    def get(self, key: str) -> bytes:
        """The value of `key`, once there is one. DistStoreError if none comes in time."""
        self.wait([key])
        return _bytes(self._do("get", key))

    def add(self, key: str, amount: int) -> int:
        """Add to the number under `key`, 0 if there is none; returns the sum."""
        return self._do("add", key, int(amount))

    def append(self, key: str, value: str | bytes) -> None:
        """Put `value` after what is under `key`."""
        self._do("append", key, _text(value))

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all `keys` have values."""
        return self._do("check", list(keys))

    def wait(self, keys: Sequence[str], timeout: datetime.timedelta | None = None) -> None:
        """Wait until all `keys` have values. DistStoreError if they do not in time."""
        seconds = self._seconds if timeout is None else timeout.total_seconds()
        end, pause = time.monotonic() + seconds, 0.001
        while not self.check(keys):
            if time.monotonic() > end:
                raise DistStoreError(f"wait timeout after {seconds * 1000:.0f}ms, keys: {', '.join(keys)}")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def delete_key(self, key: str) -> bool:
        """Forget `key`; returns whether there was one."""
        return self._do("delete_key", key)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set `key` if its value is the expected one, or "" is expected and there is none; returns its value."""
        return _bytes(self._do("compare_set", key, _text(expected_value), _text(desired_value)))

    def num_keys(self) -> int:
        """How many keys there are."""
        return len(self._do("list_keys"))

    def list_keys(self) -> list[str]:
        """The keys, in order."""
        return self._do("list_keys")

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """`get` of each key."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """`set` of each key."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)


class HashStore(Store):
    """A store in this process. As `torch.distributed.HashStore`."""

    def __init__(self):
        super().__init__()
        self._table: Table = {}
        self._lock = threading.Lock()

    def _do(self, command: str, *arguments: Any) -> Any:
        with self._lock:
            return _COMMANDS[command](self._table, *arguments)


class FileStore(Store):
    """A store in a file that all processes can reach. As `torch.distributed.FileStore`."""

    def __init__(self, file_name: str, world_size: int = -1, *, timeout: float = _TIMEOUT):
        super().__init__(timeout)
        self.path = os.path.abspath(file_name)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Any]:
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
            if os.name == "posix":
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)  # freed when the file is closed
            yield file

    def _do(self, command: str, *arguments: Any) -> Any:
        with self._locked() as file:
            before = file.read()
            table: Table = json.loads(before) if before else {}
            result = _COMMANDS[command](table, *arguments)
            after = json.dumps(table)
            if after != before:
                file.seek(0)
                file.truncate()
                file.write(after)
            return result


class TCPStore(Store):
    """A store in the process that is the master, which listens. As `torch.distributed.TCPStore`.

    port 0 lets the master choose one: see `port`. Raises DistNetworkError if the master cannot be reached in time.
    """

    def __init__(self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
                 timeout: datetime.timedelta = datetime.timedelta(seconds=_TIMEOUT), wait_for_workers: bool = True,
                 multi_tenant: bool = False, use_libuv: bool = True):  # fmt: skip
        super().__init__(timeout.total_seconds())
        self.host = host_name
        self._server: Any = None
        if is_master:
            self._server = _Server(("", port), _Answers)
            port = self._server.server_address[1]
            threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True, name="TCPStore").start()
        self.port = port
        self._lock = threading.Lock()
        client = self._connected()
        self._file = client.makefile("rw", encoding="utf-8", newline="\n")
        weakref.finalize(self, _close, self._file, client, self._server)
        if world_size is not None and world_size > 0:
            came = self._do("add", "worker-count", 1)
            while wait_for_workers and is_master and came < world_size:
                self._wait_for(lambda: int(self._do("get", "worker-count")) >= world_size)
                came = world_size

    def _connected(self) -> Any:
        found: list[socket.socket] = []
        failure: list[OSError] = []

        def reached() -> bool:
            try:
                found.append(socket.create_connection((self.host, self.port), timeout=self._seconds))
            except OSError as error:
                failure[:] = [error]
            return bool(found)

        try:
            self._wait_for(reached)
        except DistStoreError:
            raise DistNetworkError(
                f"The client socket has failed to connect to {self.host}:{self.port}: {failure[0]}"
            ) from None
        found[0].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found[0]

    def _wait_for(self, reached: Callable[[], bool]) -> None:
        end = time.monotonic() + self._seconds
        while not reached():
            if time.monotonic() > end:
                raise DistStoreError(f"wait timeout after {self._seconds * 1000:.0f}ms")
            time.sleep(_LONGEST_PAUSE)

    def _do(self, command: str, *arguments: Any) -> Any:
        with self._lock:
            try:
                self._file.write(json.dumps([command, *arguments]) + "\n")
                self._file.flush()
                answer = json.loads(self._file.readline())
            except (OSError, ValueError) as error:
                raise DistNetworkError(f"the store at {self.host}:{self.port} does not answer: {error}") from None
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer["result"]


def _close(file: Any, client: socket.socket, server: Any) -> None:
    """What is left to do when a store is no longer used."""
    with contextlib.suppress(OSError):  # the other side may have gone before
        file.close()
    client.close()
    if server is not None:
        server.shutdown()
        server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.store = HashStore()


class _Answers(socketserver.StreamRequestHandler):
    """One client: a line of JSON, [command, *arguments], gets one in return."""

    disable_nagle_algorithm = True

    def handle(self) -> None:
        assert isinstance(self.server, _Server)
        for line in self.rfile:
            try:
                answer = {"result": self.server.store._do(*json.loads(line))}
            except (KeyError, TypeError, ValueError) as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            self.wfile.write(json.dumps(answer).encode() + b"\n")


class PrefixStore(Store):
    """A store whose keys begin with a prefix in another. As `torch.distributed.PrefixStore`."""

    def __init__(self, prefix: str, store: Store):
        super().__init__(store._seconds)
        self.prefix, self.underlying_store = prefix, store

    def _do(self, command: str, *arguments: Any) -> Any:
        if not arguments:
            start = f"{self.prefix}/"
            return [k.removeprefix(start) for k in self.underlying_store._do(command) if k.startswith(start)]
        key, *rest = arguments
        given = [f"{self.prefix}/{k}" for k in key] if isinstance(key, list) else f"{self.prefix}/{key}"
        return self.underlying_store._do(command, given, *rest)
