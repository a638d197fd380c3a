"""`graphc run`: a script behaves as under Python itself, with `torch` for `eager`."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import eager
from graphc.__main__ import main
from graphc.running import recording
from graphc.running.decorating import UnknownFunction, with_compiled
from graphc.running.texts import differences

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def started(*arguments: str, **files: str) -> subprocess.CompletedProcess[str]:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        command = [sys.executable, "-m", "graphc", "run", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    return started


EVERYTHING = '''
"""A docstring."""
from __future__ import annotations
import argparse, importlib, importlib.metadata, importlib.util, pathlib, subprocess, sys
import torch, helper
import torch.nn.functional as F
import torch.utils.data
from torch import nn
from torch.nn.modules.conv import Conv2d
from torch.optim import Adam
from torch.optim.lr_scheduler import StepLR

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)

class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, k):
        return torch.tensor(float(k * k))

if __name__ == "__main__":
    import eager
    assert torch is eager is sys.modules["torch"] is helper.torch is importlib.import_module("torch")
    assert F is sys.modules["torch.nn.functional"] is eager.nn.functional and Conv2d is nn.Conv2d
    assert importlib.metadata.version("torch") == torch.__version__ and importlib.util.find_spec("torch.nn")
    assert "torch" in importlib.metadata.packages_distributions()
    try:
        import torch.no_such_module
    except ModuleNotFoundError as error:
        assert error.name == "torch.no_such_module"
    assert __file__ == str(pathlib.Path(sys.argv[0]).resolve()), __file__
    print(parser.parse_args().lr, pathlib.Path("data.txt").read_text())
    for context in ("fork", "spawn"):
        loader = torch.utils.data.DataLoader(Squares(), batch_size=3, num_workers=1, multiprocessing_context=context)
        print([batch.tolist() for batch in loader])
    print(subprocess.run([sys.executable, "-c", "import torch.nn as nn; print(nn.Linear.__module__)"],
                         capture_output=True, text=True, check=True).stdout.strip())
    helper.fail()
'''
HELPER = """
import torch
def fail():
    raise ValueError("on purpose")
"""


def test_a_script_has_all_that_python_gives_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("here")
    done = run("script.py", "--lr", "0.5", script=EVERYTHING, helper=HELPER)
    assert done.returncode == 1, done.stderr
    squares = "[[0.0, 1.0, 4.0], [9.0, 16.0, 25.0]]"
    assert done.stdout.splitlines() == ["0.5 here", squares, squares, "eager.nn.modules.linear"]
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Traceback") and "script.py" in lines[1] and "helper.py" in done.stderr
    assert lines[-1] == "ValueError: on purpose" and "graphc" not in done.stderr


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit('no')", 1, "no\n"),
        ("raise SystemExit", 0, ""),
        ("x = (", 1, "SyntaxError"),
        ("import torch; torch.ones(2) + torch.ones(3)", 1, "RuntimeError: The size of tensor a (2)"),
    ],
)
def test_exit_codes_are_python_s(run: Run, code: str, status: int, said: str) -> None:
    done = run("script.py", script=code)
    assert (done.returncode, said in done.stderr) == (status, True), done.stderr


def test_a_traceback_has_the_lines_of_the_program_alone(run: Run) -> None:
    module = "import torch\nclass M(torch.nn.Module):\n    def forward(self, x):\n        return x.view(3)\n"
    done = run("script.py", script=f"{module}M()(torch.ones(2))")
    assert [line.split(", ")[1] for line in done.stderr.splitlines() if line.startswith("  File")] == [
        "line 5",
        "line 4",
    ]


def test_what_cannot_be_run_is_status_2(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("def step():\n    pass\n")
    wrong = {
        "nothing.py": "can't open file 'nothing.py': No such file",
        ".": "can't find '__main__' module in '.'",
        "-m nothing.at.all": "No module named 'nothing.at.all'",
        "--compile stpe script.py": "no function 'stpe'; did you mean 'step'?",
        "--compile stpe --compile step script.py": "no function 'stpe'",
    }
    # `run` leaves sys.path and the environment as the program has them: not here
    each = f"from graphc.__main__ import main\nfor line in {[*wrong]}:\n    print(main(['run', *line.split()]))"
    done = subprocess.run([sys.executable, "-c", each], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == ["2"] * len(wrong)
    for line, said in zip(done.stderr.splitlines(), wrong.values(), strict=True):
        assert said in line


def test_a_module_is_run(run: Run, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "__main__.py").write_text("import sys, torch\nfrom . import part\nprint(sys.argv[1:])")
    (tmp_path / "package" / "part.py").write_text("import torch\nprint(torch.ones(2), __package__)")
    done = run("-m", "package", "a", "--b")
    assert done.stdout.splitlines() == ["tensor([1., 1.]) package", "['a', '--b']"], done.stderr


COMPARED = """
import graphc, sys, torch
torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
for k in range(3):
    loss = net(torch.ones(1, 2)).square().sum()
    graphc.record("loss", loss)
    print(f"step {k}: {loss.item():.6f}")
    loss.backward()
kind = torch.__version__ if "--part" in sys.argv else "one"
if "--part" in sys.argv:
    net.bias.data += len(kind) * 1e-3
    print("kind", kind)
"""


def test_a_program_is_compared_with_pytorch(run: Run) -> None:
    pytest.importorskip("torch")
    done = run("script.py", "--compare-with-torch", script=COMPARED)
    assert done.returncode == 0 and "output  3 lines, the same" in done.stdout, done.stdout + done.stderr
    assert "values  8 compared, the same" in done.stdout
    done = run("--compare-with-torch", "script.py", "--part", script=COMPARED)
    assert done.returncode == 1 and "line 4" in done.stdout and "net.bias: 1 of 1 elements differ" in done.stdout


@pytest.mark.parametrize(
    ("a", "b", "alike"),
    [
        ("loss 0.1234", "loss 0.1235", True),  # one unit of the last digit
        ("loss 0.1234", "loss 0.1237", False),
        ("step 3", "step 4", False),
        ("x nan inf", "x nan inf", True),
        ("[ 1.5,  2.5]", "[1.5, 2.5]", True),
        ("a 1.0", "b 1.0", False),
        ("1e-9", "2e-9", True),
        ("took 3.1 seconds", "took 9.9 seconds", True),  # ignored
        ("v1.5", "v1.6", False),  # part of a word
        ("a\nb", "a", False),
    ],
)
def test_numbers_may_differ_words_may_not(a: str, b: str, alike: bool) -> None:
    assert (differences(a, b, 1e-4, 1e-6, ("*seconds*",)) == []) == alike


def test_functions_are_decorated_where_they_stand() -> None:
    source = (
        b'"""Doc."""\nfrom __future__ import annotations\nclass A:\n    def f(self):\n        return 1\ndef f(): pass\n'
    )
    names: dict[str, object] = {}
    exec(compile(with_compiled(source, "x.py", ["A.f"]), "x.py", "exec"), names)
    assert "graphc.compile" in repr(vars(names["A"])["f"]) and "graphc.compile" not in repr(names["f"])
    assert names["__doc__"] == "Doc."
    with pytest.raises(UnknownFunction, match=r"no function 'A\.g'; did you mean 'A\.f'"):
        with_compiled(source, "x.py", ["A.g"])


def test_what_has_no_values_is_not_compared() -> None:
    module = eager.nn.Linear(2, 1)
    names = [
        name for name, _ in recording.leaves("model", {"plain": module, "skeleton": copy.deepcopy(module).to("meta")})
    ]
    assert names == ["model.plain.weight", "model.plain.bias"]


def test_tolerances_without_a_comparison_are_refused(capsys: pytest.CaptureFixture[str]):
    for option in ("--rtol=1", "--atol=1", "--ignore=*"):
        assert main(["run", option, "train.py"]) == 2
        assert "nothing is. Remedy: add --compare-with-torch" in capsys.readouterr().err


@pytest.mark.parametrize("statement", ["import torch", "import torch\nfrom torch import Tensor"])
def test_names_of_torch_that_load_when_they_are_read_are_no_change(run: Run, statement: str) -> None:
    text = f"""
{statement}
import graphc
step = torch.compile(lambda x: torch.hstack([x, torch.triu(x)]))
for _ in range(3):
    step(torch.ones(2, 2))
print(len(graphc.explain(step).programs), torch.__name__)
"""
    assert run("script.py", script=text).stdout == "1 torch\n"
