"""The layers: every import statement runs downwards. And `import eager` stays light."""

from __future__ import annotations

import ast
import functools
import importlib
import subprocess
import symtable
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import pytest

import graphc

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("graphc", "eager", "compare")

# The rooms of each package, from the ground up: a room may import from itself, from those before it, and from rooms of
# the packages below, as `_layers` says. A room is a folder, or a file at the top of its package.
GRAPHC = (
    "errors", "display", "forking", "lazy", "scoped", "logs", "files", "ops", "ir",
    "autodiff", "rewrite", "normal", "facts",
    "sharding",
    "capture",  # above autodiff: backward() inside a traced function is that transform
    "passes", "audit", "lowering", "footprint", "explaining", "execution", "compiling", "session", "running", "launch",
    "targets",
)  # fmt: skip
EAGER = (
    "return_types", "core", "engine", "functional", "sparse", "processes", "rng", "random", "checkpoints", "linalg",
    "func", "profiling", "autograd", "nn", "compiling", "distributions", "signal", "optim", "utils",
    "_higher_order_ops", "library", "onnx", "backends", "surface", "amp", "cpu", "cuda", "multiprocessing", "fx",
)  # fmt: skip
COMPARE = (
    "environment", "judging", "layouts", "cases", "locating", "modes", "checking", "declared", "fuzzing",
    "benchmarking", "minimizing", "selftest", "certificates", "reporting", "commands",
)  # fmt: skip
# the rooms of graphc that do not know eager, and those of graphc that eager may know
WITHOUT_EAGER = (
    "errors", "display", "forking", "lazy", "scoped", "logs", "files", "ops", "ir", "autodiff", "rewrite", "normal",
    "facts",
)  # fmt: skip
BELOW_EAGER = ("errors", "display", "forking", "lazy", "scoped", "files", "ops")
NOT_IMPORTED = ("__main__", "torch_functions")  # programs, and what needs PyTorch
PUBLIC = "public"  # files at the top of eager and compare that only re-export, or that others start: above all rooms


def _layers() -> dict[str, set[str]]:
    """layer -> the layers that it may import from, besides itself."""
    below: dict[str, set[str]] = {}
    in_eager = [f"eager.{room}" for room in EAGER]
    for k, room in enumerate(EAGER):
        below[f"eager.{room}"] = {*in_eager[:k], *BELOW_EAGER}
    below[f"eager.{PUBLIC}"] = {*in_eager, *BELOW_EAGER}
    every_eager = set(below)
    for k, room in enumerate(GRAPHC):
        below[room] = {*GRAPHC[:k]} | (set() if room in WITHOUT_EAGER else every_eager)
    below["rewrite"] -= {"autodiff"}
    below["files"] -= {"lazy"}
    below["facade"] = {"errors", "lazy", "logs"}  # graphc/__init__.py: what it offers is loaded on first use
    every_graphc = {*GRAPHC, "facade", "compare.facade"}
    below["compare.facade"] = {"lazy"}
    below["commands"] = every_graphc | every_eager  # also graphc/__main__.py
    for k, room in enumerate(COMPARE):
        below[f"compare.{room}"] = {*(f"compare.{other}" for other in COMPARE[:k])} | every_graphc | every_eager
    below[f"compare.{PUBLIC}"] = {f"compare.{room}" for room in COMPARE} | every_graphc | every_eager
    return below


BELOW = _layers()
# package -> the layers that may import it
OWNERS: dict[str, set[str]] = {
    "networkx": {"ir"},
    "jax": {"lowering"},
    "jaxlib": {"lowering"},
    "torch": {layer for layer in BELOW if layer.startswith("compare.")},
}
# imports inside functions that run upwards, or close a circle of files: importing module -> (imported, reason)
EXCEPTIONS: dict[str, tuple[str, str]] = {
    "graphc.ir.graph": ("graphc.ir", "methods of Graph that print, check, save and draw it: each in a file of its own"),
    "eager.functional.creation": ("eager.sparse", "torch.zeros(layout=torch.sparse_coo) makes a sparse tensor"),
    "eager.nn.module": ("eager.compiling.compiled", "Module.compile is torch.compile of its forward"),
    "eager._higher_order_ops.flow": ("graphc", "torch.cond and torch.while_loop are those of graphc"),
    "eager._dynamo": ("graphc.compiling.module", "OptimizedModule is a class of the compiler"),
    "eager.library.checks": ("eager.testing", "opcheck compares as torch.testing.assert_close does"),
    "eager.compiling.compiled": ("graphc", "torch.compile compiles by graphc.compile"),
    "graphc.commands.compared": ("compare", "`graphc check`, `localize` and `bench` are commands of compare"),
    "eager.processes.world": ("graphc.lowering", "init_process_group joins processes by JAX's runtime"),
    "eager.distributed.run": ("graphc.launch", "torch.distributed.run starts processes by the launcher"),
    "eager.core.runtime": ("graphc.lowering", "tensors on devices are JAX's, which is loaded for the first one"),
    "eager.utils.tensorboard.writer": ("graphc.capture", "SummaryWriter.add_graph draws a traced model"),
}


class Import(NamedTuple):
    """One import statement: who imports what, where, whether only when a function is called, or a type checker runs."""

    module: str
    imported: str
    line: int
    in_function: bool
    for_types: bool = False


def imports_of(module: str, source: str, *, is_package: bool = False) -> Iterator[Import]:
    """Every import in `source`, also `import_module("...")`, with relative names resolved."""
    package = module if is_package else module.rpartition(".")[0]

    calls = any(name in source for name in ("import_module", "__import__", "families"))  # else only statements import
    todo: list[tuple[ast.AST, bool, bool]] = [(ast.parse(source), False, False)]
    while todo:
        node, in_function, for_types = todo.pop()
        for name in _names(node, package):
            yield Import(module, name, node.lineno, in_function, for_types)  # type: ignore[attr-defined]
        inside = in_function or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        typing = for_types or (isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING")
        children = ast.iter_child_nodes(node) if calls else _statements_in(node)
        todo += [(child, inside, typing) for child in children]


def _statements_in(node: ast.AST) -> Iterator[ast.AST]:
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        inner = getattr(node, name, ())
        yield from inner if isinstance(inner, list) else ()


def _names(node: ast.AST, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = resolve_name("." * node.level + (node.module or ""), package) if node.level else str(node.module)
        return [_origin(base, alias.name) for alias in node.names]
    if isinstance(node, ast.Call) and node.args:
        function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if function in ("import_module", "__import__") and isinstance(node.args[0], ast.Constant):
            return [str(node.args[0].value)]
        if function == "families":  # (package, its modules)
            base = node.args[0].value if isinstance(node.args[0], ast.Constant) else package
            return [f"{base}.{name}" for name in ast.literal_eval(node.args[1]).split()]
    return []


def _origin(base: str, name: str) -> str:
    """Where `from base import name` gets the name from: a submodule, or what the lazy facade loads."""
    if base == "graphc" and name in graphc._WHERE:
        return graphc._WHERE[name]
    return f"{base}.{name}" if _is_module(base, name) else base


@functools.cache
def _is_module(package: str, name: str) -> bool:
    inner = ROOT.joinpath(*package.split("."), name)
    return inner.with_suffix(".py").exists() or inner.is_dir()


def layer_of(module: str) -> str | None:
    """The layer of a module of this project; None for any other module."""
    top, _, rest = module.partition(".")
    part = rest.partition(".")[0]
    if top == "graphc":
        return {"": "facade", "__main__": "commands"}.get(part, part)
    if module == "compare":
        return "compare.facade"
    if top in PACKAGES:
        return f"{top}.{part if part in (EAGER if top == 'eager' else COMPARE) else PUBLIC}"
    return None


def violation(found: Import, exceptions: Mapping[str, tuple[str, str]] | None = None) -> str | None:
    """What is wrong with an import, or None."""
    layer, target = layer_of(found.module), layer_of(found.imported)
    where = f"{found.module}:{found.line} imports {found.imported}"
    if layer not in BELOW:
        return f"{found.module} belongs to no layer; known are {sorted(BELOW)}"
    if _is_excepted(found, exceptions or {}):
        return None
    top = found.imported.partition(".")[0]
    if top in OWNERS and layer not in OWNERS[top]:
        return f"{where}, which is for {sorted(OWNERS[top])} only"
    if target is not None and target != layer and target not in BELOW[layer]:
        return f"{where}: layer '{layer}' may import from {sorted(BELOW[layer])}, not from '{target}'"
    return None


def _is_excepted(found: Import, exceptions: Mapping[str, tuple[str, str]]) -> bool:
    return found.in_function and found.imported.startswith(exceptions.get(found.module, ("-", ""))[0])


def circles(imports: Sequence[Import]) -> list[list[str]]:
    """Files that import each other in circles, also by imports inside functions."""
    between = [i for i in imports if layer_of(i.imported) and i.module != i.imported and not i.for_types]
    graph = nx.DiGraph((i.module, i.imported) for i in between)
    return [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1]


@functools.cache
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
    problems = [problem for found in every_import() if (problem := violation(found, EXCEPTIONS))]
    assert not problems, "\n".join(dict.fromkeys(problems))


def test_no_files_import_each_other_in_circles():
    assert circles([i for i in every_import() if not _is_excepted(i, EXCEPTIONS)]) == []


def test_every_room_and_exception_is_still_needed():
    imports = every_import()
    upwards = {i.module for i in imports if i.in_function and violation(i)}
    in_circles = {module for circle in circles(imports) for module in circle}
    assert {*EXCEPTIONS} <= upwards | in_circles
    assert len(EXCEPTIONS) <= 12
    used = {layer_of(i.module) for i in imports}
    assert {layer for layer in BELOW if layer not in used} <= {"lazy", "errors", "eager.return_types"}


def test_circles_are_found():
    first = Import("graphc.ops.a", "graphc.ops.b", 1, False)
    back = Import("graphc.ops.b", "graphc.ops.a", 1, True)
    assert circles([first, back]) == [["graphc.ops.a", "graphc.ops.b"]]
    assert circles([first, back._replace(for_types=True)]) == []
    assert circles([first]) == []


@pytest.mark.parametrize(
    ("module", "source", "problem"),
    [
        ("graphc.ops.spec", "import eager", "layer 'ops' may import from"),
        ("graphc.ops.spec", "from graphc.ir import graph", "not from 'ir'"),
        ("graphc.ir.graph", "def f():\n    from eager.core.tensor import Tensor", "not from 'eager.core'"),
        ("eager.core.tensor", "from graphc.capture import trace", "not from 'capture'"),
        ("eager.core.tensor", "from graphc import compile", "not from 'compiling'"),
        ("eager.core.tensor", "import graphc", "not from 'facade'"),
        ("eager.core.tensor", "def f():\n    from eager.nn import Module", "not from 'eager.nn'"),
        ("eager.engine.dispatch", "from eager.functional import shapes", "not from 'eager.functional'"),
        ("eager.optim.sgd", "from eager import save", "not from 'eager.public'"),
        ("eager.functional.shapes", "from eager.storage import x", "not from 'eager.public'"),
        (
            "eager.core.tensor",
            "from importlib import import_module\nimport_module('graphc.lowering')",
            "not from 'lowering'",
        ),
        ("eager.core.tensor", "import jax.numpy as jnp", "for ['lowering'] only"),
        ("graphc.compiling.compiled", "from jax import jit", "for ['lowering'] only"),
        ("graphc.passes.cse", "import networkx as nx", "for ['ir'] only"),
        ("graphc.rewrite.rule", "from ..autodiff import gradients", "not from 'autodiff'"),
        ("graphc.lowering.lower", "import compare", "not from 'compare.facade'"),
        ("graphc.lowering.lower", "import graphc.compiling.compiled", "not from 'compiling'"),
        ("compare.judging.tolerance", "from compare.checking.findings import Report", "not from 'compare.checking'"),
        ("compare.cases.case", "from compare.modes import EAGER", "not from 'compare.modes'"),
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
        ("eager.core.tensor", "import numpy as np\nfrom graphc.ops import OPS\nfrom graphc.errors import CaptureError"),
        ("eager.nn.module", "from eager.core.tensor import Tensor\nfrom eager.functional import shapes"),
        ("graphc.ir.graph", "import networkx as nx\nfrom graphc import errors\nfrom . import printing"),
        ("graphc.capture", "from eager.core.tensor import Tensor\nfrom graphc.ir.graph import Graph"),
        ("graphc.lowering.jit", "import jax\nfrom graphc.passes import optimize"),
        (
            "compare.checking.equivalence",
            "import graphc\nfrom eager.core.tensor import Tensor\nfrom graphc import compile",
        ),
    ],
)
def test_downward_import_is_accepted(module: str, source: str):
    assert [p for found in imports_of(module, source) if (p := violation(found))] == []


def test_exception_holds_inside_functions_only():
    exception = {"eager.core.tensor": ("graphc.compiling", "a reason")}
    inside, outside = "def f():\n    import graphc.compiling.compiled", "import graphc.compiling.compiled"
    assert [violation(i, exception) for i in imports_of("eager.core.tensor", inside)] == [None]
    assert all(violation(i, exception) for i in imports_of("eager.core.tensor", outside))


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
        f"m.split('.')[1] not in {BELOW_EAGER}))"
    )
    assert run_python(code) == ""


def test_import_eager_loads_little_beside_numpy():
    """What it costs is in benchmarks/imports.py."""
    code = (
        "import sys, numpy; before = set(sys.modules)\nimport eager\n"
        "print(*(m for m in sys.modules.keys() - before if m.split('.')[0] not in ('eager', 'graphc')))"
    )
    assert set(run_python(code).split()) <= {"__future__", "_heapq", "cmath", "heapq", "threading"}


def _is_comprehension(table: symtable.SymbolTable) -> bool:
    return table.get_name().strip("<>") in ("listcomp", "setcomp", "dictcomp")


def _shared_with_comprehensions(table: symtable.SymbolTable) -> Iterator[str]:
    """Names that are variables of a comprehension in a function, and something global elsewhere in it."""
    for inner in table.get_children():
        yield from _shared_with_comprehensions(inner)
    if table.get_type() != "function" or _is_comprehension(table):
        return
    comprehensions = [t for t in table.get_children() if _is_comprehension(t)]
    local = {s.get_name() for t in comprehensions for s in t.get_symbols() if s.is_local()}
    shared = local & {s.get_name() for t in (table, *comprehensions) for s in t.get_symbols() if s.is_global()}
    yield from (f"{table.get_name()}: {name}" for name in shared)


def test_every_module_can_be_imported():
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        place = path.relative_to(ROOT).with_suffix("")
        if place.name not in NOT_IMPORTED and "children" not in place.parts:
            importlib.import_module(".".join(place.parts).removesuffix(".__init__"))


@pytest.mark.deep
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="symtable shows no comprehensions from Python 3.12 on")
def test_comprehensions_do_not_hide_what_a_function_uses():
    """CPython 3.12.3 takes the one for the other."""
    wrong = [
        f"{path}: {name}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for name in _shared_with_comprehensions(symtable.symtable(path.read_text(), str(path), "exec"))
    ]
    assert not wrong
    code = "def f(xs):\n    return [id for id in xs], {id(x) for x in xs}"
    assert [*_shared_with_comprehensions(symtable.symtable(code, "", "exec"))] == ["f: id"]
