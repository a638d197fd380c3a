"""`python -m graphc`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from graphc.__main__ import main
from graphc.commands.graphs import FORMATS
from graphc.ir import Graph
from tests.ir import graphs


@pytest.fixture
def saved(tmp_path: Path) -> str:
    graphs.loss().save(tmp_path / "loss.graph")
    return str(tmp_path / "loss.graph")


def test_show_prints_the_text(saved: str, capfdbinary: pytest.CaptureFixture[bytes]):
    assert main(["show", saved]) == 0
    assert Graph.parse(capfdbinary.readouterr().out.decode()) == graphs.loss()


def test_check_judges_each_file(saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["check", saved]) == 0
    assert "<Graph loss: 2 inputs" in capsys.readouterr().out
    (tmp_path / "bad").write_bytes(Path(saved).read_bytes()[:-5])
    assert main(["check", saved, str(tmp_path / "bad"), str(tmp_path / "none")]) == 1
    printed = capsys.readouterr()
    assert "<Graph loss" in printed.out
    damaged, missing = printed.err.splitlines()
    assert "bad: the file is damaged" in damaged and "none: No such file" in missing


@pytest.mark.parametrize("to", sorted(set(FORMATS) - {"artifact"}))
def test_export_writes_every_format(to: str, saved: str, tmp_path: Path):
    if to == "tensorboard":
        pytest.importorskip("tensorboard")
    assert main(["export", saved, "--to", to, "-o", str(tmp_path / "out")]) == 0
    data = (tmp_path / "out").read_bytes()
    if to == "svg":
        ElementTree.fromstring(data)
    expected = {"html": b"<!doctype html>", "dot": b'digraph "loss"', "jax": b"import jax", "stablehlo": b"@main",
                "tensorboard": b"matmul", "text": b"def loss", "svg": b"matmul"}  # fmt: skip
    assert expected[to] in data


@pytest.mark.parametrize("arguments", [["export"], ["export", "x"], ["export", "x", "--to", "png"]])
def test_wrong_arguments_are_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    capsys.readouterr()


def test_no_arguments_print_the_help(capsys: pytest.CaptureFixture[str]):
    assert main([]) == 2
    assert "explain" in capsys.readouterr().out


def test_a_command_that_is_not_there_is_one_line_with_what_to_do(capsys: pytest.CaptureFixture[str]):
    assert main(["optimise", "x"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "no command 'optimise'" in line and "'optimize'" in line and "--help" in line


@pytest.mark.parametrize("command", [["explain"], ["explain", "--details"]])
def test_reports_keep_to_80_columns_without_colours(command: list[str], saved: str, capfd: pytest.CaptureFixture[str],
                                                   monkeypatch: pytest.MonkeyPatch):  # fmt: skip
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    for arguments in ([command[0], saved, *command[1:]], ["doctor"]):
        assert main(arguments) == 0
        shown = capfd.readouterr().out
        assert "\x1b" not in shown
        assert all(len(line) <= 80 or " " not in line.strip() for line in shown.splitlines())


def test_errors_are_one_line_and_status_1(tmp_path: Path, saved: str, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "x").write_text(json.dumps({}))
    for arguments in (
        ["show", str(tmp_path / "x")],
        ["export", saved, "--to", "svg", "-o", str(tmp_path / "no" / "x")],
    ):
        assert main(arguments) == 1
        printed = capsys.readouterr()
        assert len(printed.err.splitlines()) == 1 and not printed.out


def test_as_a_module(saved: str):
    done = subprocess.run([sys.executable, "-m", "graphc", "show", saved], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("def loss")


FUNCTION = """
import eager as torch

def f(x):
    return x.neg().neg() / x / x

def example_args():
    return (torch.ones(3),)
"""


@pytest.fixture
def function(tmp_path: Path) -> str:
    (tmp_path / "given.py").write_text(FUNCTION)
    return f"{tmp_path / 'given.py'}:f"


def test_optimize_prints_the_graph_and_what_was_done(function: str, capfdbinary: pytest.CaptureFixture[bytes]):
    assert main(["optimize", function, "--details", "--without", "quotients,mul_one,div_self"]) == 0
    printed = capfdbinary.readouterr().out.decode()
    assert Graph.parse(printed.partition("\n\n")[0] + "\n").name == "f"
    assert "neg_neg at" in printed and "not x / x = 1: at x = 0.0" in printed


def test_optimize_goes_step_by_step(function: str, capfdbinary: pytest.CaptureFixture[bytes]):
    assert main(["optimize", function, "--step", "--level", "1"]) == 0
    assert capfdbinary.readouterr().out.decode().startswith("1. neg_neg at ")


def test_optimize_takes_saved_graphs_and_writes_json(saved: str, capfdbinary: pytest.CaptureFixture[bytes]):
    assert main(["optimize", saved, "--json", "--strict"]) == 0
    assert json.loads(capfdbinary.readouterr().out)["name"] == "loss"


def test_show_takes_a_function(function: str, capfdbinary: pytest.CaptureFixture[bytes]):
    assert main(["show", function]) == 0
    assert Graph.parse(capfdbinary.readouterr().out.decode()).name == "f"


RAISES = "import torch\n\ndef f(x):\n    return {0}\n\ndef example_args():\n    return (torch.ones(3, 4),)\n"


@pytest.mark.parametrize("command", ["show", "explain", "memory"])
@pytest.mark.parametrize(
    ("expression", "said"),
    [
        (
            "x @ x",
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (3x4 and 3x4) in matmul(f32[3,4], f32[3,4])",
        ),
        ("{}[1]", "KeyError: 1"),
    ],
)
def test_what_a_function_raises_is_one_line(command: str, expression: str, said: str, tmp_path: Path,
                                            capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    (tmp_path / "given.py").write_text(RAISES.format(expression))
    assert main([command, f"{tmp_path / 'given.py'}:f"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"the function raises {said} at " in line and line.endswith("given.py:4")


@pytest.mark.parametrize("more", [["--without", "neg_ne"], ["--args", "none:none"]])
def test_what_optimize_cannot_use_is_status_1(function: str, more: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(["optimize", function, *more]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "neg_neg" in line or "module 'none' cannot be imported" in line


def test_commands_of_compare_find_neighbours_and_pytorch_s_names(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("import torch\nW = torch.ones(3)\n")
    (tmp_path / "given.py").write_text(
        "import torch, neighbour\ndef f(x):\n    return (x * neighbour.W).sum()\n"
        "def example_args():\n    return (torch.ones(3, requires_grad=True),)\n"
    )
    command = [sys.executable, "-m", "graphc", "check", f"{tmp_path / 'given.py'}:f", "--modes", "eager,graph"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("f: "), done.stderr


@pytest.mark.parametrize(
    ("source", "name", "said"),
    [
        ("def step(x):\n    pass\n", "stpe", "did you mean 'step'?"),
        ("x = 1\nraise KeyError('no')\n", "f", "KeyError: 'no' (line 2)"),
        ("import sys\nsys.exit(3)\n", "f", "it exits (sys.exit(3))"),
    ],
)
def test_what_is_wrong_with_a_function_is_one_line(
    source: str, name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "given.py").write_text(source)
    for command, status in (("explain", 1), ("check", 2)):
        assert main([command, f"{tmp_path / 'given.py'}:{name}"]) == status
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line


def test_doctor_says_what_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    import numpy as np

    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["versions"]["numpy"] == np.__version__ and found["extras"]["dev"]
    assert "threads" in found["machine"]["BLAS"] and "cpu" in found["machine"]["devices"]
