"""`import compare`: light, and every name is what it says, whatever was imported before."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import compare


@pytest.mark.parametrize("name", compare.__all__)
def test_names_load(name: str):
    assert not isinstance(getattr(compare, name), ModuleType)
    assert name in dir(compare)


def test_no_name_is_a_module_too():
    modules = {module.name for module in pkgutil.iter_modules(compare.__path__)}
    assert not modules & set(compare.__all__)


def test_unknown_name():
    with pytest.raises(AttributeError, match="module 'compare' has no attribute 'nonsense'"):
        _ = compare.nonsense


def test_import_loads_nothing():
    code = (
        "import sys, compare; heavy = ('jax', 'numpy', 'eager', 'graphc', 'compare'); "
        "print(*(m for m in sys.modules if m.split('.')[0] in heavy))"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    light = {"graphc.errors", "graphc.forking"}  # of Python's own modules alone; it has to be there before a fork
    assert set(done.stdout.split()) == {"compare", "graphc", "graphc.lazy"} | light


@pytest.mark.parametrize("module", ["eager.nn.utils.weight_norm", "eager.nn.utils.spectral_norm",
                                    "eager.autograd.gradcheck"])  # fmt: skip
def test_a_function_is_not_hidden_by_its_module(module: str, monkeypatch: pytest.MonkeyPatch):
    """Which somebody may import before the function is asked for."""
    package, _, name = module.rpartition(".")
    found = sys.modules[package] if package in sys.modules else import_module(package)
    getattr(found, name)
    monkeypatch.delitem(sys.modules, module)
    monkeypatch.delitem(vars(found), name)
    import_module(module)
    assert callable(getattr(found, name)) and not isinstance(getattr(found, name), ModuleType)
