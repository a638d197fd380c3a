"""`spawn`: one function in several processes, which end together when one fails. As `torch.multiprocessing.spawn`."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import signal
import sys
import tempfile
import time
import traceback
import weakref
from collections.abc import Callable, Sequence
from multiprocessing import connection
from typing import Any

_GRACE = 30.0  # seconds that processes have to end when one has failed, as in PyTorch


class ProcessException(Exception):
    """A process of `spawn` has failed: `error_index` is its number, `error_pid` that of the system."""

    def __init__(self, msg: str, error_index: int, pid: int):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    @property
    def error_pid(self) -> int:
        """The number that the system has for the process."""
        return self.pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """It has raised an exception, whose traceback is the message."""


class ProcessExitedException(ProcessException):
    """It has ended by a signal, or with another exit code than 0."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], error_file: str) -> None:
    """What a process does."""
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # whoever has started the processes hears of it, too
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)  # the end of the interpreter would wait for a collective that never ends


class ProcessContext:
    """The processes that `spawn` has started, with `join=False`. As `torch.multiprocessing.ProcessContext`."""

    def __init__(self, processes: Sequence[Any], error_files: Sequence[str]):
        self.processes, self.error_files = list(processes), list(error_files)
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The numbers that the system has for them."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one more process has ended; returns whether all have, and well.

        If one has failed, ends the others, after `grace_period` seconds by force, and raises ProcessRaisedException or
        ProcessExitedException.
        """
        if not self.sentinels:
            return True
        ended = [self.sentinels.pop(s) for s in connection.wait(list(self.sentinels), timeout=timeout)]
        for index in ended:
            self.processes[index].join()
        failed = [index for index in ended if self.processes[index].exitcode]
        if not failed:
            return not self.sentinels
        self._end(_GRACE if grace_period is None else grace_period)
        raise self._failure(self._cause(failed))

    def _cause(self, failed: list[int]) -> int:
        """The first that was not aborted, or left by another: that one may have ended a moment later."""
        everyone = [*failed, *(k for k, p in enumerate(self.processes) if p.exitcode and k not in failed)]
        for index in everyone:
            said = self._said(index)
            if said is not None and "torch.distributed.DistBackendError" not in said:
                return index
        return failed[0]

    def _said(self, index: int) -> str | None:
        try:
            with open(self.error_files[index], "rb") as file:
                return pickle.load(file)
        except (OSError, EOFError):
            return None

    def _end(self, grace: float) -> None:
        limit = time.monotonic() + grace
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(max(limit - time.monotonic(), 0))
            if process.is_alive():
                process.kill()
                process.join()

    def _failure(self, index: int) -> ProcessException:
        process, said = self.processes[index], self._said(index)
        if said is not None:
            message = f"\n\n-- Process {index} terminated with the following error:\n{said}"
            return ProcessRaisedException(message, index, process.pid)
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            message = f"process {index} terminated with signal {name}"
            return ProcessExitedException(message, index, process.pid, code, name)
        return ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)


SpawnContext = ProcessContext


def start_processes(fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True,
                    daemon: bool = False, start_method: str = "spawn") -> ProcessContext | None:  # fmt: skip
    """Run `fn(i, *args)` in processes 0 to `nprocs` - 1. As `torch.multiprocessing.start_processes`.

    Raises what `ProcessContext.join` does, if it is to `join`; else returns the processes.
    """
    method = multiprocessing.get_context(start_method)
    folder = tempfile.mkdtemp(prefix="graphc-spawn-")
    files = [os.path.join(folder, str(index)) for index in range(nprocs)]
    processes: list[Any] = []
    for index, file in enumerate(files):
        process: Any = method.Process(target=_run, args=(fn, index, args, file), daemon=daemon)  # type: ignore[attr-defined]
        process.start()
        processes.append(process)
    context = ProcessContext(processes, files)
    weakref.finalize(context, shutil.rmtree, folder, ignore_errors=True)
    if not join:
        return context
    while not context.join():
        pass
    return None


def spawn(fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
          start_method: str = "spawn") -> ProcessContext | None:  # fmt: skip
    """`start_processes`, each with an interpreter of its own. As `torch.multiprocessing.spawn`."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
