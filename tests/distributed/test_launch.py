"""The launcher: what processes are given, and how a job ends when one fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from argparse import ArgumentParser
from pathlib import Path

import pytest

from graphc.launch.job import Failure, Job
from graphc.launch.options import add_options, job_of
from tests.distributed.jobs import ROOT, launch

JOB = "tests.distributed.failing_job"


def fails(how: str, where: int, *options: str) -> tuple[int, str, str]:
    done = launch("--nproc_per_node", "2", *options, "-m", JOB, how, str(where), limit=120)
    return done.returncode, done.stdout, done.stderr


def test_an_exception_ends_the_job_and_is_told():
    status, out, said = fails("raise", 1)
    assert status == 1
    assert "[rank 0] attempt 0 of 2" in out
    assert "graphc launch: rank 1 (process" in said
    assert said.rstrip().endswith("ValueError: this one is to blame")


def test_a_killed_process_ends_the_job():
    status, _, said = fails("kill", 0)
    assert status == 128 + signal.SIGKILL
    assert "rank 0 (process" in said
    assert "was ended by SIGKILL" in said


@pytest.mark.deep
def test_restarts():
    status, out, said = fails("once", 1, "--max-restarts", "1")
    assert (status, "rank 1 (process" in said, "starting anew, 1 of 1" in said) == (0, True, True)
    assert "[rank 0] attempt 1 of 2" in out


@pytest.mark.deep
def test_a_process_that_hangs_in_the_middle_of_a_collective():
    status, _, said = fails("hang", 1, "--timeout", "2")
    assert status == 1
    assert "Timed out after 2.0 s: rank 0 waits in all_reduce(float32[2]) of ranks 0, 1" in said
    assert "rank 1 has not come: it is at" in said
    assert "failing_job.py" in said


@pytest.mark.deep
@pytest.mark.parametrize(
    ("how", "where", "text"),
    [
        ("kill in a collective", 1, "rank 1 (process"),
        ("kill in a collective", 0, "rank 0 (process"),
        ("stop", 1, "rank 1 has not come: nothing was heard of it"),
        ("stop", 0, "the store, in rank 0, does not answer"),
    ],
)
def test_a_process_that_ends_or_stops_in_the_middle_of_a_collective(how: str, where: int, text: str):
    status, _, said = fails(how, where, "--timeout", "3")
    assert status == (1 if how == "stop" else 137)
    assert text in said.partition("graphc launch: ")[2]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_behind(number: int, tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text("import os, subprocess, sys\nprint(os.getpid())\nsubprocess.run(['sleep', '600'])\n")
    command = [sys.executable, "-m", "graphc.launch", "--processes", "2", str(program)]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT)
    assert job.stdout is not None
    groups = [int(job.stdout.readline().rpartition(" ")[2]) for _ in range(2)]
    job.send_signal(number)
    assert job.wait(60) == (130 if number == signal.SIGINT else -number)
    job.stdout.close()
    for _ in range(200):
        if not any(map(_exists, groups)):
            break
        time.sleep(0.05)
    assert not any(map(_exists, groups))


def _exists(group: int) -> bool:
    """Whether a process of a group still runs."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return any(_runs(group, int(entry)) for entry in os.listdir("/proc") if entry.isdigit())


def _runs(group: int, pid: int) -> bool:
    try:
        state, _, of = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:3]
    except OSError:
        return False
    return int(of) == group and state != "Z"


def parsed(*arguments: str) -> Job:
    parser = ArgumentParser()
    add_options(parser)
    return job_of(parser.parse_args([*arguments, "program.py", "--their", "option"]))


def test_options():
    options = "--nproc-per-node=3 --nnodes=2:2 --node_rank=1 --rdzv-endpoint=host:29400 --rdzv_backend=c10d"
    job = parsed(*options.split())
    assert (job.local, job.nodes, job.node, job.address, job.port) == (3, 2, 1, "host", 29400)
    assert job.arguments == ("--their", "option")
    assert parsed("--standalone", "--master-port=3").port is None
    for wrong in ("--processes=0", "--nnodes=2", "--nnodes=1:4", "--rdzv-endpoint=host:port"):
        with pytest.raises(ValueError, match=r"processes|master|machines|host:port"):
            parsed(wrong)


def test_reports():
    assert "was ended by SIGSEGV" in Failure(3, 99, -signal.SIGSEGV, 1.0, []).text()
    assert Failure(3, 99, -11, 1.0, []).status == 139
    lines = ["Traceback (most recent call last):", "old", "Traceback (most recent call last):", "new"]
    text = Failure(0, 1, 2, 1.0, lines).text()
    assert "exited with code 2" in text
    assert "new" in text and "old" not in text
