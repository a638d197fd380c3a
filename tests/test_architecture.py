"""The layers: every import statement runs downwards. And `import eager` stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

import pytest

import graphc

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("graphc", "eager", "compare")

# layer -> the layers that it may import from, besides itself
BELOW: dict[str, set[str]] = {
    "errors": set(),
    "forking": {"errors"},
    "lazy": {"forking"},
    "files": {"errors"},
    "ops": {"errors"},
    "ir": {"errors", "files", "ops"},
    "eager": {"errors", "files", "lazy", "ops"},
    "autodiff": {"errors", "files", "ops", "ir"},
    "rewrite": {"errors", "files", "ops", "ir"},
    # above autodiff: backward() inside a traced function is that transform
    "capture": {"errors", "files", "ops", "ir", "eager", "autodiff"},
    "passes": {"errors", "files", "ops", "ir", "eager", "capture", "autodiff", "rewrite"},
    "lowering": {"errors", "files", "ops", "ir", "eager", "capture", "autodiff", "rewrite", "passes"},
}
for _layer in set(BELOW) - {"errors", "forking"}:
    BELOW[_layer] |= {"forking"}
# the facades of the compiler, each on top of the one before
for _layer in ("execution", "compiling", "session"):
    BELOW[_layer] = set(BELOW)
_COMPILER = set(BELOW)
BELOW["facade"] = {"errors", "lazy"}  # graphc/__init__.py: what it offers is loaded on first use
BELOW["commands"] = _COMPILER | {"facade"}  # graphc/__main__.py
BELOW["compare"] = _COMPILER | {"facade"}
# package -> the layers that may import it
OWNERS: dict[str, set[str]] = {
    "networkx": {"ir"},
    "jax": {"lowering"},
    "jaxlib": {"lowering"},
    "torch": {"compare"},
}
# conveniences that reach up, inside functions only: (importing module, imported module)
REACHES_UP: set[tuple[str, str]] = {("eager.utils.tensorboard.writer", "graphc.capture")}


class Import(NamedTuple):
    """One import statement: who imports what, where, and whether it runs only when a function is called."""

    module: str
    imported: str
    line: int
    in_function: bool


def imports_of(module: str, source: str, *, is_package: bool = False) -> Iterator[Import]:
    """Every import in `source`, also `import_module("...")`, with relative names resolved."""
    package = module if is_package else module.rpartition(".")[0]

    def visit(node: ast.AST, in_function: bool) -> Iterator[Import]:
        for name in _names(node, package):
            yield Import(module, name, node.lineno, in_function)  # type: ignore[attr-defined]
        inside = in_function or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    yield from visit(ast.parse(source), False)


def _names(node: ast.AST, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = resolve_name("." * node.level + (node.module or ""), package) if node.level else str(node.module)
        return [_origin(base, alias.name) for alias in node.names]
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if function in ("import_module", "__import__") and isinstance(node.args[0].value, str):
            return [node.args[0].value]
    return []


def _origin(base: str, name: str) -> str:
    """Where `from base import name` gets the name from: a submodule, or what the lazy facade loads."""
    if base == "graphc" and name in graphc._WHERE:
        return graphc._WHERE[name]
    inner = ROOT.joinpath(*base.split("."), name)
    return f"{base}.{name}" if inner.with_suffix(".py").exists() or inner.is_dir() else base


def layer_of(module: str) -> str | None:
    """The layer of a module of this project; None for any other module."""
    top, _, rest = module.partition(".")
    if top == "graphc":
        part = rest.partition(".")[0]
        return {"": "facade", "__main__": "commands"}.get(part, part)
    return top if top in PACKAGES else None


def violation(found: Import, exceptions: set[tuple[str, str]] = frozenset()) -> str | None:  # type: ignore[assignment]
    """What is wrong with an import, or None."""
    layer, target = layer_of(found.module), layer_of(found.imported)
    where = f"{found.module}:{found.line} imports {found.imported}"
    if layer not in BELOW:
        return f"{found.module} belongs to no layer; known are {sorted(BELOW)}"
    if found.in_function and (found.module, found.imported) in exceptions:
        return None
    top = found.imported.partition(".")[0]
    if top in OWNERS and layer not in OWNERS[top]:
        return f"{where}, which is for {sorted(OWNERS[top])} only"
    if target is not None and target != layer and target not in BELOW[layer]:
        return f"{where}: layer '{layer}' may import from {sorted(BELOW[layer])}, not from '{target}'"
    return None


def every_import() -> list[Import]:
    result: list[Import] = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            module = ".".join(parts[:-1] if is_package else parts)
            result += imports_of(module, path.read_text(encoding="utf-8"), is_package=is_package)
    return result


def test_imports_run_downwards():
    problems = [problem for found in every_import() if (problem := violation(found, REACHES_UP))]
    assert not problems, "\n".join(dict.fromkeys(problems))


def test_every_exception_is_still_needed():
    used = {(i.module, i.imported) for i in every_import() if i.in_function and violation(i)}
    assert used >= REACHES_UP, f"no longer needed: {REACHES_UP - used}"


@pytest.mark.parametrize(
    ("module", "source", "problem"),
    [
        ("graphc.ops.spec", "import eager", "layer 'ops' may import from"),
        ("graphc.ops.spec", "from graphc.ir import graph", "not from 'ir'"),
        ("graphc.ir.graph", "def f():\n    from eager.tensor import Tensor", "not from 'eager'"),
        ("eager.tensor", "from graphc.capture import trace", "not from 'capture'"),
        ("eager.tensor", "from graphc import compile", "not from 'compiling'"),
        ("eager.tensor", "import graphc", "not from 'facade'"),
        (
            "eager.tensor",
            "from importlib import import_module\nimport_module('graphc.lowering')",
            "not from 'lowering'",
        ),
        ("eager.tensor", "import jax.numpy as jnp", "for ['lowering'] only"),
        ("graphc.compiling.compiled", "from jax import jit", "for ['lowering'] only"),
        ("graphc.passes.cse", "import networkx as nx", "for ['ir'] only"),
        ("graphc.rewrite.rule", "from ..autodiff import gradients", "not from 'autodiff'"),
        ("graphc.lowering.lower", "import compare", "not from 'compare'"),
        ("graphc.lowering.lower", "import graphc.compiling.compiled", "not from 'compiling'"),
        ("graphc.novelty", "import numpy", "belongs to no layer"),
    ],
)
def test_violation_is_caught(module: str, source: str, problem: str):
    problems = [p for found in imports_of(module, source) if (p := violation(found))]
    assert len(problems) >= 1
    assert problem in problems[-1]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("eager.tensor", "import numpy as np\nfrom graphc.ops import OPS\nfrom graphc.errors import CaptureError"),
        ("graphc.ir.graph", "import networkx as nx\nfrom graphc import errors\nfrom . import printing"),
        ("graphc.capture", "from eager.tensor import Tensor\nfrom graphc.ir.graph import Graph"),
        ("graphc.lowering.jit", "import jax\nfrom graphc.passes import optimize"),
        ("compare.check", "import graphc\nimport eager\nfrom graphc import compile"),
    ],
)
def test_downward_import_is_accepted(module: str, source: str):
    assert [p for found in imports_of(module, source) if (p := violation(found))] == []


def test_exception_holds_inside_functions_only():
    exception = {("eager.tensor", "graphc.compiling.compiled")}
    inside, outside = "def f():\n    import graphc.compiling.compiled", "import graphc.compiling.compiled"
    assert [violation(i, exception) for i in imports_of("eager.tensor", inside)] == [None]
    assert all(violation(i, exception) for i in imports_of("eager.tensor", outside))


def run_python(code: str, settings: Mapping[str, str] | None = None) -> str:
    """What a fresh interpreter, started in the project's root with the environment `settings`, prints for `code`."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


HEAVY = ("jax", "jaxlib", "networkx", "scipy", "matplotlib", "torch")


@pytest.mark.parametrize("module", ["eager", "graphc", "graphc.ops"])
def test_import_loads_nothing_heavy(module: str):
    code = f"import sys, {module}; print(*(m for m in {HEAVY} if m in sys.modules))"
    assert run_python(code) == ""


def test_eager_computes_gradients_without_the_compiler():
    code = (
        "import sys, eager as torch\n"
        "x = torch.tensor([1.0, 2.0], requires_grad=True)\n"
        "(torch.tanh(x) * x).sum().backward()\n"
        f"print(*(m for m in {HEAVY} if m in sys.modules), *(m for m in sys.modules if m.startswith('graphc.') and "
        "not m.startswith(('graphc.ops', 'graphc.errors', 'graphc.forking', 'graphc.lazy'))))"
    )
    assert run_python(code) == ""


def test_import_eager_loads_little_beside_numpy():
    """What it costs is in benchmarks/imports.py."""
    code = (
        "import sys, numpy; before = set(sys.modules)\nimport eager\n"
        "print(*(m for m in sys.modules.keys() - before if m.split('.')[0] not in ('eager', 'graphc')))"
    )
    assert set(run_python(code).split()) <= {"__future__", "_heapq", "cmath", "heapq", "threading"}
