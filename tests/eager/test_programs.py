"""Programs as public training code is written, run as they are: eagerly, compiled, and the losses by PyTorch."""

from __future__ import annotations

import importlib
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import eager
from tests.oracle import asked_of_torch

HERE = Path(__file__).parent / "programs"
PROGRAMS = sorted(path.stem for path in HERE.glob("*.py") if path.stem != "__init__")
SLOW = {"gan", "resnet"}  # tracing convolutions takes seconds
pytestmark = pytest.mark.filterwarnings("ignore:Lazy modules are a new feature", "ignore::FutureWarning")


@pytest.fixture(autouse=True)
def settings_as_before():
    """Programs set them for good."""
    switches = eager.backends.cuda.matmul, eager.backends.cudnn
    before = [switch.allow_tf32 for switch in switches]
    yield
    for switch, value in zip(switches, before, strict=True):
        switch.allow_tf32 = value
    eager.set_float32_matmul_precision("highest")


def losses(name, compile):
    program = importlib.import_module(f"tests.eager.programs.{name}")
    eager.set_float32_matmul_precision("highest")
    return program.main(compile=compile)


@pytest.mark.on_numpy
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.deep if name in SLOW else ()) for name in PROGRAMS]
)
def test_both_modes_train_alike(name):
    eagerly, compiled = losses(name, False), losses(name, True)
    np.testing.assert_allclose(compiled, eagerly, rtol=2e-3, atol=1e-4)
    assert np.isfinite(eagerly).all()


@pytest.mark.deep
@asked_of_torch("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_losses_are_pytorchs(name):
    """The same text, with PyTorch in place of eager."""
    text = (HERE / f"{name}.py").read_text(encoding="utf-8").replace("import eager as torch", "import torch")
    source = re.sub(r"\beager\b", "torch", text)
    module = types.ModuleType(f"{name}_in_pytorch")
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, f"{name}.py", "exec"), vars(module))
        expected = module.main(compile=False)
    finally:
        del sys.modules[module.__name__]
    np.testing.assert_allclose(losses(name, False), expected, rtol=5e-3, atol=5e-4)
