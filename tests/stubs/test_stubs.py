"""The stubs are what the objects say, and the objects say it to `help` and `dir`, too."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import subprocess
import sys
from functools import cache
from inspect import Parameter
from typing import Any

import pytest

import eager
from eager.core.tensor import Tensor
from tests.oracle import torch_or_skip
from tests.stubs import forms
from tests.stubs.__main__ import ROOT
from tests.stubs.files import STUBS

FUNCTIONS = {path: path.removesuffix(".pyi").removesuffix("/__init__").replace("/", ".") for path in STUBS}
FUNCTIONS = {p: m for p, m in FUNCTIONS.items() if m not in ("eager.core.tensor_methods", "eager.nn.modules")}
# NumPy's names of arguments, which PyTorch takes too and does not document
NUMPYS = {"axis", "axes", "keepdims"}
LISTED = [
    "eager", "eager.accelerator", "eager.autograd", "eager.autograd.functional", "eager.backends", "eager.cuda",
    "eager.fft", "eager.func", "eager.linalg", "eager.masked", "eager.nn", "eager.nn.functional", "eager.nn.init",
    "eager.nn.utils", "eager.optim", "eager.optim.lr_scheduler", "eager.optim.swa_utils", "eager.random",
    "eager.signal.windows", "eager.special", "eager.testing", "eager.types", "eager.utils", "eager.utils.data",
    "graphc", "compare",
]  # fmt: skip


DOCUMENTED = [name for name in LISTED if name != "eager.types"]


@cache
def fresh() -> Any:
    """What a process of its own finds: here, other tests may have declared ops, which are then functions, too."""
    command = [sys.executable, "-m", "tests.stubs", "--json", *DOCUMENTED]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


@pytest.mark.parametrize("path", STUBS)
def test_stubs_are_what_the_objects_say(path: str):
    assert fresh()["stubs"][path] == (ROOT / path).read_text(), "python -m tests.stubs"


@cache
def definitions(path: str) -> dict[str, list[ast.FunctionDef]]:
    """The functions that a stub defines, with their overloads; of the stub of a class, its methods."""
    body = ast.parse((ROOT / path).read_text()).body
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name == "TensorMethods":
            body = node.body
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


def names_of(node: ast.FunctionDef) -> set[str]:
    """The parameters that a definition names, and that a caller may name."""
    return {a.arg for a in (*node.args.args, *node.args.kwonlyargs)}


def disagreement(function: Any, nodes: list[ast.FunctionDef], method: bool) -> str | None:
    """Which parameters the stub and `inspect.signature` do not have in common."""
    parameters = list(inspect.signature(function).parameters.values())[method:]
    runtime = {p.name for p in parameters if p.kind is not Parameter.VAR_POSITIONAL and p.name[0] != "_"}
    stub = {name for node in nodes for name in names_of(node)} - ({"self"} if method else set())
    if any(p.kind is Parameter.VAR_KEYWORD for p in parameters):
        return None
    if unknown := stub - runtime:
        return f"the function has no {sorted(unknown)}"
    several = len(nodes) > 1 or any(node.args.vararg or node.args.posonlyargs for node in nodes)
    missing = runtime - stub - NUMPYS - ({"out"} if method else set())
    return f"the stub has no {sorted(missing)}" if missing and not several else None


@pytest.mark.parametrize("path", FUNCTIONS)
def test_functions_take_what_their_stubs_say_and_have_docstrings(path: str):
    module = importlib.import_module(FUNCTIONS[path])
    wrong = {}
    for name, nodes in definitions(path).items():
        function = getattr(module, name)
        wrong[name] = disagreement(function, nodes, False) or ("" if inspect.getdoc(function) else "no docstring")
    assert not {name: what for name, what in wrong.items() if what}


def test_methods_take_what_their_stubs_say_and_have_docstrings():
    wrong = {}
    for name, nodes in definitions("eager/core/tensor_methods.pyi").items():
        method = inspect.getattr_static(Tensor, name)
        method = getattr(Tensor, name) if not isinstance(method, property) else method
        if isinstance(method, property):
            continue
        if name.startswith("__"):
            continue
        wrong[name] = disagreement(method, nodes, True) or ""
        if not inspect.getdoc(method):
            wrong[name] = "no docstring"
    assert not {name: what for name, what in wrong.items() if what}


def test_a_stub_with_another_argument_is_found():
    node = ast.parse("def relu(input, slope, inplace=False): ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    assert disagreement(eager.nn.functional.relu, [node], False) == "the function has no ['slope']"
    node = ast.parse("def relu(input): ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    assert disagreement(eager.nn.functional.relu, [node], False) == "the stub has no ['inplace']"


def test_a_parameter_without_a_type_is_found():
    def f(input: Tensor, strange=1): ...

    with pytest.raises(ValueError, match="no type for parameter 'strange'"):
        forms.forms("f", f)


def test_every_type_by_name_is_needed():
    assert fresh()["unused"] == []


@pytest.mark.parametrize("name", LISTED)
def test_dir_lists_public_names_that_are_there(name: str):
    module = importlib.import_module(name)
    listed = [n for n in dir(module) if not n.startswith("__")]
    assert listed and not [n for n in listed if n[0] == "_" or not hasattr(module, n)]
    assert not {"Any", "annotations", "np", "builtins", "importlib", "lazy", "listing"} & {*listed}


def test_dir_of_a_tensor_lists_its_methods():
    listed = dir(eager.ones(2))
    assert {"sum", "add_", "T", "grad"} <= {*listed} and not {"to_mkldnn", "_d"} & {*listed}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_everything_public_has_a_docstring_and_a_signature(name: str):
    assert fresh()["undocumented"][name] == []


def test_arguments_have_pytorchs_names():
    """What PyTorch's own stubs call the arguments, where it declares one form and this package does."""
    torch = torch_or_skip()
    wrong = {}
    for path, theirs in {"eager/nn/functional.pyi": torch.nn.functional, "eager/fft.pyi": torch.fft}.items():
        for name, nodes in definitions(path).items():
            try:
                wanted = inspect.signature(getattr(theirs, name)).parameters
            except (AttributeError, ValueError, TypeError):
                continue
            if len(nodes) > 1 or name.endswith("_with_indices") or any("args" in n or "kwargs" in n for n in wanted):
                continue
            if not names_of(nodes[0]) >= {n for n in wanted if n[0] != "_"}:
                wrong[name] = set(wanted) - names_of(nodes[0])
    assert not wrong
