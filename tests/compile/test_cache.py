"""What JAX compiles is kept on disk, and a line tells of a long compilation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import graphc
from graphc.lowering import cache, timing

PROGRAM = """
import jax
hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event) if event.endswith("cache_hits") else None)
import eager as torch, graphc

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(30))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x.sum()

torch.manual_seed(0)
model = Model()
step = graphc.compile(lambda x: model(x))
loss = step(torch.ones(4, 16))
loss.backward()
print(len(hits), float(loss))
"""


def run(directory: Path, **more: str) -> tuple[int, float]:
    """(cache hits, result) of the program in a new process."""
    environment = {**os.environ, "GRAPHC_CACHE_DIR": str(directory), "GRAPHC_CACHE": "", **more}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    hits, result = done.stdout.split()
    return int(hits), float(result)


def test_a_second_process_takes_programs_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    hits, first = run(tmp_path / "cache")
    assert hits == 0 and any((tmp_path / "cache").iterdir())
    hits, second = run(tmp_path / "cache")
    assert hits >= 2 and second == first  # forward and backward


def test_the_cache_can_be_turned_off_and_yields_to_jaxs_own(tmp_path: Path):
    assert run(tmp_path / "none", GRAPHC_CACHE="0")[0] == 0 and not (tmp_path / "none").exists()
    run(tmp_path / "ours", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "jax"))
    assert not (tmp_path / "ours").exists()


def test_where_the_cache_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("GRAPHC_CACHE", "1")
    monkeypatch.delenv("GRAPHC_CACHE_DIR", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_directory() == tmp_path / "graphc" / "xla"
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "here"))
    assert cache.cache_directory() == tmp_path / "here"
    monkeypatch.setenv("GRAPHC_CACHE", "0")
    assert cache.cache_directory() is None


def test_a_long_compilation_shows_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    import eager as torch

    monkeypatch.setattr(timing, "PATIENCE", 0.0)
    fast = graphc.compile(lambda x: torch.linalg.svd(x @ x).S.sum())
    fast(torch.ones(3, 3))
    shown = capsys.readouterr().err
    assert shown.startswith("graphc: compiling lambda_ (") and shown.rstrip().endswith("s")
    monkeypatch.setattr(timing, "PATIENCE", 100.0)
    fast(torch.ones(4, 4))
    assert capsys.readouterr().err == ""
    assert "xla" in fast.explain()
