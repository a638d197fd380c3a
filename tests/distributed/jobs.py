"""Runs a job of several processes, and collects what each has left in a folder."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def launch(*arguments: str, limit: float = 300.0) -> subprocess.CompletedProcess[str]:
    """What `python -m graphc.launch *arguments` has written, and its exit status."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GRAPHC_CACHE": "0", "JAX_PLATFORMS": "cpu"}
    if not environment.get("GRAPHC_TEST_XLA"):
        from tests import quick  # which starts JAX: not in a process of the job

        environment["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} {quick.FLAGS}".strip()
    command = [sys.executable, "-m", "graphc.launch", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit)


def results(module: str, size: int, folder: Path, *arguments: str) -> list[Any]:
    """What each process of a job has given `keep`. The job is a module of these tests."""
    done = launch(
        "--processes", str(size), "--timeout", "120", "-m", f"tests.distributed.{module}", str(folder), *arguments
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [pickle.loads((folder / str(rank)).read_bytes()) for rank in range(size)]


def keep(folder: str, rank: int, value: Any) -> None:
    """Leave `value` for the test."""
    Path(folder, str(rank)).write_bytes(pickle.dumps(value))


def sides(arguments: Sequence[str]) -> tuple[Any, Any]:
    """(torch, torch.distributed), which are eager's unless "torch" is asked for."""
    import importlib

    name = "torch" if "torch" in arguments else "eager"
    return importlib.import_module(name), importlib.import_module(f"{name}.distributed")
