"""Programs of the field, written for PyTorch, print what PyTorch prints: run over eager, and with functions compiled.

`printed/` has what PyTorch printed. To renew it: `python examples/programs/NAME.py > tests/running/printed/NAME.txt`.
"""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from unittest import mock

import pytest

from graphc.running.comparing import compare_with_torch
from graphc.running.decorating import with_compiled
from graphc.running.texts import differences
from graphc.running.torch_names import torch_names

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "programs"
PRINTED = Path(__file__).parent / "printed"
# program -> the function that `graphc run --compile` compiles
PROGRAMS = {
    "actor_critic": "learn", "char_gpt": "train_step", "char_rnn": "step", "diffusion": "step", "ensemble": "step",
    "flow": "step", "functional": "f", "gaussian_process": "loss", "gpt_cache": "step", "graph_network": "step",
    "kalman": "negative_log_likelihood", "lbfgs": "rosenbrock", "mixture_density": "loss", "neural_ode": "step",
    "pinn": "step", "ppo": "step", "resume": "loss_of", "segmentation": "step", "translation": "step", "vae": "step",
}  # fmt: skip
SLOW = ("char_gpt", "diffusion", "flow", "resume", "segmentation", "translation")  # to compile
RTOL, ATOL = 1e-3, 2e-4  # of training in float32


def printed(name: str, compiled: tuple[str, ...] = (), arguments: tuple[str, ...] = ()) -> str:
    path = FOLDER / f"{name}.py"
    code = compile(with_compiled(path.read_bytes(), str(path), compiled), str(path), "exec", dont_inherit=True)
    argv = mock.patch.object(sys, "argv", [str(path), *arguments])
    with torch_names(), contextlib.redirect_stdout(io.StringIO()) as output, argv:
        exec(code, {"__name__": "__main__", "__file__": str(path)})
    return output.getvalue()


def test_every_program_is_here() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == {*PROGRAMS} == {path.stem for path in PRINTED.iterdir()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_eager_prints_what_pytorch_prints(name: str) -> None:
    assert differences(printed(name), (PRINTED / f"{name}.txt").read_text(), RTOL, ATOL) == []


@pytest.mark.on_numpy
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.deep) if name in SLOW else name for name in PROGRAMS]
)
def test_compiled_prints_what_pytorch_prints(name: str) -> None:
    text = printed(name, (PROGRAMS[name],))
    assert differences(text, (PRINTED / f"{name}.txt").read_text(), RTOL, ATOL) == []


@pytest.mark.on_numpy
@pytest.mark.parametrize("compiled", [(), pytest.param(("--compiled",), marks=pytest.mark.deep)], ids=str)
def test_a_gpt_goes_on_from_its_checkpoint(tmp_path: Path, compiled: tuple[str, ...]) -> None:
    """In each mode, bit for bit as far as it is printed; and the checkpoint of the one fits the other."""
    settings = ("--batch", "2", "--every", "2", *compiled)
    whole = printed("char_gpt", arguments=(*settings, "--steps", "8")).splitlines()
    kept = ("--out", str(tmp_path))
    first = printed("char_gpt", arguments=(*settings, *kept, "--steps", "4"))
    rest = printed("char_gpt", arguments=(*settings, *kept, "--steps", "8", "--resume"))
    assert first.splitlines() + rest.splitlines() == whole
    written = printed("char_gpt", arguments=(*settings[:4], *kept, "--steps", "8", "--resume", "--sample", "9"))
    assert len(written) == 11


def test_a_wrong_program_is_found() -> None:
    """The comparison is able to fail: a step size that is a hundredth larger."""
    text = printed("neural_ode")
    source = (FOLDER / "neural_ode.py").read_text()
    assert "lr=0.02" in source
    with torch_names(), contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(source.replace("lr=0.02", "lr=0.0202"), "neural_ode.py", "exec"), {"__name__": "__main__"})
    assert differences(output.getvalue(), text, RTOL, ATOL)


@pytest.mark.deep
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_pytorch(name: str) -> None:
    pytest.importorskip("torch")
    report = compare_with_torch(str(FOLDER / f"{name}.py"), rtol=RTOL, atol=ATOL)
    assert report.ok, str(report)
    assert report.compared > 5
