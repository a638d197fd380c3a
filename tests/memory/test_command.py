"""`graphc memory`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import eager as torch
import graphc
from graphc.__main__ import main

PROGRAM = """
import torch
def example_args():
    return (torch.ones(64, 64),)
def f(x):
    return (x @ x).tanh() @ x
"""


def test_a_function_and_a_graph_take_the_same(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    (tmp_path / "program.py").write_text(PROGRAM)
    graphc.trace(lambda x: (x @ x).tanh() @ x, torch.ones(64, 64)).save(tmp_path / "f.graph")
    found = []
    for target in (f"{tmp_path}/program.py:f", f"{tmp_path}/f.graph"):
        assert main(["memory", target, "--json"]) == 0
        found.append(json.loads(capfd.readouterr().out))
    assert found[0]["peak"] == found[1]["peak"] == 3 * 16384
    assert {value["op"] for value in found[0]["programs"][0]["alive"]} == {"matmul", "tanh"}
    assert found[0]["programs"][0]["exact"] == found[0]["peak"]


def test_it_prints_what_is_alive(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    (tmp_path / "program.py").write_text(PROGRAM)
    assert main(["memory", f"{tmp_path}/program.py:f"]) == 0
    out = capfd.readouterr().out
    assert out.startswith("f on cpu: 48.0 KiB\n  f: peak 48.0 KiB, by XLA's plan (estimate 48.0 KiB)\n")
    assert main(["memory", f"{tmp_path}/program.py:f", "--no-exact"]) == 0
    assert "f: peak 48.0 KiB, by an estimate\n" in capfd.readouterr().out
    assert "16.0 KiB  f32[64,64]  matmul at" in out
