"""A job of two processes, one of which is killed again and again, ends with the losses of one that nobody disturbed."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.distributed.jobs import ROOT

KILLS = 4
PROGRAM = "examples/programs/char_gpt.py"


def _started(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "graphc.launch", "--torch", "--processes", "2", "--timeout", "60", PROGRAM]
    command += ["--steps", "12", "--every", "1", "--batch", "4", "--out", str(folder)]
    command += ["--resume"] if (folder / "index.json").exists() else []
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def _losses(text: str) -> dict[str, str]:
    return dict(re.findall(r"step (\d+): loss (\S+)", text))


def _children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.deep
@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for the processes of the job")
def test_a_job_of_two_processes_goes_on_after_each_kill(tmp_path: Path):
    began = time.monotonic()
    whole = _started(tmp_path / "whole")
    expected, took = _losses(whole.communicate()[0]), time.monotonic() - began
    assert whole.returncode == 0
    assert len(expected) == 12
    moments, kills, found = random.Random(0), 0, {}
    for attempt in range(5 * KILLS):
        job = _started(tmp_path / "killed")
        if kills < KILLS:
            time.sleep(moments.uniform(0.2, 0.8) * took)
            ranks = _children(job.pid) if job.poll() is None else []
            if ranks:
                os.kill(moments.choice(ranks), signal.SIGKILL)
                kills += 1
        found |= _losses(job.communicate()[0])
        if job.returncode == 0:
            break
        assert attempt < 5 * KILLS - 1
    assert kills
    assert found == expected
