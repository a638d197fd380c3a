"""A job: its processes, from the start to the end of all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from typing import IO, Any, NamedTuple, final

from eager.processes.errors import DistBackendError
from eager.processes.rendezvous import free_port
from eager.processes.world import HEARTBEAT, HEARTBEAT_VARIABLE, TIMEOUT_VARIABLE

PIPE_VARIABLE = "GRAPHC_LAUNCH_PIPE"  # the file descriptor that ends with the launcher
KEPT = 60  # lines of what a process writes to stderr, for the report of its end
_POLL = 0.05  # seconds
_SETTLE = 0.5  # seconds in which a failure may turn out to be that of another process
_LEFT = f"{DistBackendError.__module__}.{DistBackendError.__name__}"  # as a traceback ends
FAILED = "graphc launch: rank {rank} (process {pid}) {end} after {seconds:.1f} s; the others are ended"
NO_PROGRAM = "graphc launch: can't open file '{program}': no such file"
AGAIN = "graphc launch: starting anew, {count} of {most}"
STOPPED = "graphc launch: ended by {name}"


class Job(NamedTuple):
    """What to run, and how.

    local, nodes, node  processes on each machine, machines, which of them this is
    port     where rank 0 listens; None: a free one
    timeout  seconds that a collective may wait; None: as the program says
    grace    seconds that a process has to end when it is asked to
    """

    program: str
    arguments: tuple[str, ...]
    module: bool
    torch: bool
    local: int
    nodes: int
    node: int
    address: str
    port: int | None
    restarts: int
    timeout: float | None
    grace: float
    name: str


class Failure(NamedTuple):
    """How a process has ended: its exit code, or a negative number, of a signal."""

    rank: int
    pid: int
    code: int
    seconds: float
    lines: list[str]

    @property
    def status(self) -> int:
        """The exit status of the job."""
        return self.code if self.code > 0 else 128 - self.code

    def text(self) -> str:
        """The report: who, how, and its traceback."""
        end = f"exited with code {self.code}" if self.code > 0 else f"was ended by {_signal_name(-self.code)}"
        lines = [FAILED.format(rank=self.rank, pid=self.pid, end=end, seconds=self.seconds)]
        starts = [k for k, line in enumerate(self.lines) if line.startswith("Traceback (most recent call last)")]
        return "\n".join([*lines, *(f"  {line}" for line in self.lines[starts[-1] if starts else -5 :])])


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class _Stopped(BaseException):
    """The launcher was told to end: `number` is the signal."""

    def __init__(self, number: int):
        super().__init__()
        self.number = number


@final
class _Process:
    """One process of an attempt, and the threads that pass on what it writes."""

    def __init__(self, rank: int, command: list[str], environment: dict[str, str], pipe: int):
        self.rank = rank
        self.lines: deque[str] = deque(maxlen=KEPT)
        self.popen = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, pass_fds=(pipe,),
        )  # fmt: skip
        self._readers = [
            self._reader(self.popen.stdout, sys.stdout, None), self._reader(self.popen.stderr, sys.stderr, self.lines)
        ]  # fmt: skip

    def _reader(self, source: IO[bytes] | None, target: Any, kept: deque[str] | None) -> threading.Thread:
        assert source is not None

        def pass_on() -> None:
            for line in source:
                text = line.decode(errors="replace").rstrip("\r\n")
                if kept is not None:
                    kept.append(text)
                target.write(f"[rank {self.rank}] {text}\n")
                target.flush()

        thread = threading.Thread(target=pass_on, daemon=True)
        thread.start()
        return thread

    def signal(self, number: int) -> None:
        """Send a signal to the process, and those that it has started."""
        try:
            os.killpg(self.popen.pid, number)
        except (ProcessLookupError, PermissionError):  # all have ended; on macOS, zombies are refused
            self.popen.poll()

    def was_left(self) -> bool:
        """Whether it failed because others had: a collective did, or the runtime has aborted the process."""
        return self.popen.returncode == -signal.SIGABRT or any(line.startswith(_LEFT) for line in self.lines)

    def drain(self) -> None:
        """Pass on the rest of what it has written; a process that it has left behind may hold the pipe open."""
        for reader in self._readers:
            reader.join(timeout=1.0)


@final
class _Attempt:
    """All processes of this machine, started once."""

    def __init__(self, job: Job, count: int):
        self._job, self._start = job, time.monotonic()
        port = free_port() if job.port is None else job.port
        reads, self._writes = os.pipe()  # which ends, for all of them, when this process does
        self._processes: list[_Process] = []
        try:
            for local in range(job.local):
                environment = _environment(job, local, port, count) | {PIPE_VARIABLE: str(reads)}
                rank = job.node * job.local + local
                self._processes.append(_Process(rank, _command(job), environment, reads))
        except BaseException:
            self.end()
            raise
        finally:
            os.close(reads)

    def wait(self) -> Failure | None:
        """Wait until all processes have ended well, or one has not: the first."""
        running = list(self._processes)
        while running:
            ended = [p for p in running if p.popen.poll() is not None]
            if any(p.popen.returncode for p in ended):
                return self._cause(time.monotonic() - self._start)
            running = [p for p in running if p not in ended]
            time.sleep(_POLL)
        return None

    def _cause(self, seconds: float) -> Failure:
        """The failure that was not for want of another process; the first that there is, if all were."""
        limit = time.monotonic() + _SETTLE
        while True:
            bad = [p for p in self._processes if p.popen.poll()]
            for p in bad:
                p.drain()
            causes = [p for p in bad if not p.was_left()]
            if causes or time.monotonic() > limit:
                p = (causes or bad)[0]
                return Failure(p.rank, p.popen.pid, p.popen.returncode, seconds, list(p.lines))
            time.sleep(_POLL)

    def end(self) -> None:
        """End what still runs: ask first, then insist. Processes that they have started are ended, too."""
        for p in self._processes:
            p.signal(signal.SIGTERM)
            p.signal(signal.SIGCONT)  # one that is stopped would not hear of it
        limit = time.monotonic() + self._job.grace
        while time.monotonic() < limit and any(p.popen.poll() is None for p in self._processes):
            time.sleep(_POLL)
        for p in self._processes:
            p.signal(signal.SIGKILL)
            p.popen.wait()
            p.drain()
        os.close(self._writes)


def _command(job: Job) -> list[str]:
    options = [name for name, given in (("--module", job.module), ("--torch", job.torch)) if given]
    return [sys.executable, "-m", "graphc.launch.worker", *options, "--", job.program, *job.arguments]


def _environment(job: Job, local: int, port: int, count: int) -> dict[str, str]:
    size = job.local * job.nodes
    found = {
        "RANK": job.node * job.local + local, "LOCAL_RANK": local, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": job.local,
        "GROUP_RANK": job.node, "GROUP_WORLD_SIZE": job.nodes, "ROLE_RANK": job.node * job.local + local,
        "ROLE_WORLD_SIZE": size, "MASTER_ADDR": job.address, "MASTER_PORT": port,
        "TORCHELASTIC_RESTART_COUNT": count, "TORCHELASTIC_MAX_RESTARTS": job.restarts,
        "TORCHELASTIC_RUN_ID": job.name, "PYTHONUNBUFFERED": 1,
    }  # fmt: skip
    if job.timeout is not None:
        # the message of a collective that times out says more than the end of the runtime, which so comes later
        found |= {TIMEOUT_VARIABLE: job.timeout, HEARTBEAT_VARIABLE: min(HEARTBEAT, 1.5 * job.timeout + 2)}
    before = dict(os.environ)
    if job.local > 1:
        before.setdefault("OMP_NUM_THREADS", "1")  # processes share the cores
    return before | {name: str(value) for name, value in found.items()}


def run(job: Job) -> int:
    """Run a job on this machine. Returns its exit status."""
    if not job.module and not os.path.exists(job.program):
        print(NO_PROGRAM.format(program=job.program), file=sys.stderr)
        return 2

    def stop(number: int, frame: Any) -> None:
        raise _Stopped(number)

    numbers = [signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        return _attempts(job)
    except _Stopped as stopped:
        print(STOPPED.format(name=_signal_name(stopped.number)), file=sys.stderr)
        return 128 + stopped.number
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _attempts(job: Job) -> int:
    status = 0
    for count in range(job.restarts + 1):
        if count:
            print(AGAIN.format(count=count, most=job.restarts), file=sys.stderr, flush=True)
        attempt = _Attempt(job, count)
        try:
            failure = attempt.wait()
        finally:
            attempt.end()
        if failure is None:
            return 0
        print(failure.text(), file=sys.stderr, flush=True)
        status = failure.status
    return status
