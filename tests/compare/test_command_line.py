"""`python -m compare`: what it loads, prints and returns."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from compare.command_line import main

PROGRAM = """
import time
import eager as torch

def good(x, y):
    return (x * y).sum()

def unstable(x, y):
    return x * float(time.perf_counter_ns() % 1000003)

def branches(x, y):
    return x * bool(x.data_ptr()), y

def arguments():
    return torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0])

def factory():
    return good, arguments()

def keywords():
    return good, arguments()[:1], {"y": arguments()[1]}

def nothing():
    return 3
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


def check(program: str, name: str, *options: str) -> int:
    return main(["check", f"{program}:{name}", "--args", f"{program}:arguments", *options])


def test_exit_codes(program: str):
    assert check(program, "good", "--modes", "eager,graph") == 0
    assert check(program, "unstable", "--modes", "eager") == 1
    assert check(program, "branches", "--modes", "graph") == 2


def test_factories(program: str):
    assert main(["check", f"{program}:factory", "--modes", "graph"]) == 0
    assert main(["check", f"{program}:keywords", "--modes", "graph"]) == 0


def test_example_args_beside_the_function(program: str, tmp_path: Path):
    path = tmp_path / "other.py"
    path.write_text(PROGRAM + "\nexample_args = arguments\n")
    assert main(["check", f"{path}:good", "--modes", "graph"]) == 0


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_colon", "must be module:function"),
        ("no_such_module_at_all:f", "No module named"),
        ("missing.py:f", "no file 'missing.py'"),
        ("{program}:absent", "has no attribute 'absent'"),
        ("{program}:torch", "is not callable"),
        ("{program}:nothing", "returned int, not (function, args)"),
    ],
)
def test_unusable_target(program: str, target: str, message: str, capsys: pytest.CaptureFixture[str]):
    assert main(["check", target.format(program=program)]) == 2
    assert message in capsys.readouterr().err


def test_unknown_mode(program: str, capsys: pytest.CaptureFixture[str]):
    assert check(program, "good", "--modes", "gpu") == 2
    assert "unknown mode 'gpu'" in capsys.readouterr().err


def test_json(program: str, capsys: pytest.CaptureFixture[str]):
    assert check(program, "good", "--modes", "graph,compiled", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["ok"] is True
    assert {"result", "gradient of x"} <= {f["what"] for f in printed["findings"]}


def test_bench(program: str, capsys: pytest.CaptureFixture[str]):
    arguments = ["--args", f"{program}:arguments", "--min-time", "0", "--modes", "eager,compiled", "--json"]
    assert main(["bench", f"{program}:good", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "good"


def test_bench_refuses_what_does_not_agree(program: str, capsys: pytest.CaptureFixture[str]):
    assert main(["bench", f"{program}:unstable", "--args", f"{program}:arguments"]) == 1
    assert "do not agree" in capsys.readouterr().err


def test_ops(capsys: pytest.CaptureFixture[str]):
    assert main(["ops", "tanh", "sum", "--modes", "graph,compiled"]) == 0
    printed = capsys.readouterr().out
    assert "tanh" in printed
    assert "2 ops" in printed


def test_unknown_op(capsys: pytest.CaptureFixture[str]):
    assert main(["ops", "nonsense"]) == 2
    assert "no op named 'nonsense'" in capsys.readouterr().err


def test_as_a_program(program: str):
    command = [sys.executable, "-m", "compare", "check", f"{program}:factory", "--modes", "graph"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    assert "good: identical" in done.stdout
