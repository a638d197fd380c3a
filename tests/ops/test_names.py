"""An op is declared once: nobody outside `graphc.ops` asks an op for its name, or keeps a table of names of ops."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphc.ops import OPS

ROOT = Path(__file__).resolve().parents[2]
# file or folder -> why there is a table of such names
EXCEPTIONS = {
    "compare/judging/dtypes.py": "PyTorch's dtypes for each op, which are an opinion besides the declaration",
    "compare/modes/torch_functions.py": "PyTorch's function for each op, which is an opinion besides the declaration",
    "eager/func/batch_rules.py": "the batching rules",
    "eager/functional": "PyTorch's functions, some of them named like ops",
    "eager/nn/init.py": "PyTorch's names of nonlinearities",
    "eager/return_types.py": "PyTorch's functions with named results, some of them named like ops",
    "eager/special.py": "PyTorch's functions, some of them named like ops",
    "eager/sparse/forms.py": "what ops do with sparse operands",
    "eager/surface/public.py": "functions that PyTorch calls deprecated",
    "eager/surface/interop.py": "NumPy's functions",
    "graphc/capture/number.py": "Python's operators on traced numbers",
    "graphc/capture/suggesting.py": "PyTorch's methods, in the line of a user",
    "graphc/ir/sizes.py": "Python's operators on sizes",
    "graphc/lowering": "kernels for XLA",
}
SOME = 3  # names that make a table


def names_asked(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The lines that compare the name of an op, and what they compare it with."""
    nodes = list(ast.walk(tree))
    assigned = {getattr(n.targets[0], "id", ""): n.value for n in nodes if isinstance(n, ast.Assign)}
    for node in nodes:
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        sides += [node.subject, *(case.pattern for case in node.cases)] if isinstance(node, ast.Match) else []
        if any(_is_name_of_op(side) for side in sides):
            known = [assigned.get(side.id, side) if isinstance(side, ast.Name) else side for side in sides]
            yield from ((node.lineno, name) for side in known for name in _strings(side))  # type: ignore[attr-defined]


def _is_name_of_op(node: ast.AST) -> bool:
    """op.name, node.op.name, ..."""
    owner = node.value if isinstance(node, ast.Attribute) and node.attr == "name" else None
    return getattr(owner, "id", getattr(owner, "attr", "")) == "op"


def tables(tree: ast.AST) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The sets and dicts of `SOME` names of ops."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            found = [name for key in node.keys if key is not None for name in _strings(key)]
        elif isinstance(node, ast.Set):
            found = list(_strings(node))
        elif isinstance(node, ast.Call) and _is_maker(node.func):
            found = [name for a in node.args if not isinstance(a, (ast.Dict, ast.Set)) for name in _strings(a)]
            found += [str(k.arg) for k in node.keywords]
        else:
            continue
        if len(names := tuple(name for name in found if name in OPS)) >= SOME:
            yield node.lineno, names


def _is_maker(function: ast.AST) -> bool:
    """set, frozenset, dict, dict.fromkeys"""
    if isinstance(function, ast.Attribute) and function.attr == "fromkeys":
        function = function.value
    return isinstance(function, ast.Name) and function.id in ("set", "frozenset", "dict")


def _strings(node: ast.AST) -> Iterator[str]:
    """The strings in an expression, and the words of those that are split."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from part.value.split()


def every_text() -> dict[Path, str]:
    files = (path for package in ("graphc", "eager", "compare") for path in sorted((ROOT / package).rglob("*.py")))
    elsewhere = (path for path in files if not path.is_relative_to(ROOT / "graphc" / "ops"))
    return {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in elsewhere}


def exception_of(path: Path) -> str | None:
    return next((place for place in EXCEPTIONS if path.is_relative_to(place)), None)


def test_nobody_asks_an_op_for_its_name():
    trees = {path: ast.parse(text) for path, text in every_text().items() if "op.name" in text}
    asked = [(path, *found) for path, tree in trees.items() for found in names_asked(tree)]
    found = [f"{path}:{line} asks whether an op is '{name}'" for path, line, name in asked if name in OPS]
    assert found == [], "declare a trait, or a field of Op"


def test_no_table_elsewhere_names_ops():
    found = [(path, *table) for path, text in every_text().items() for table in tables(ast.parse(text))]
    assert [f"{path}:{line} {names}" for path, line, names in found if exception_of(path) is None] == []
    assert {exception_of(path) for path, *_ in found} == {*EXCEPTIONS}, "exceptions that nobody needs"


@pytest.mark.parametrize(
    "source",
    [
        'op.name == "sign"', '"sign" != node.op.name', 'step.op.name in ("add", "mul")', 'op.name not in {"sign"}',
        'SIGNS = ("sign", "sgn")\nop.name in SIGNS', 'match op.name:\n    case "add":\n        pass',
    ],
)  # fmt: skip
def test_a_question_for_a_name_is_found(source: str):
    assert list(names_asked(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        '{"add", "mul", "sub"}', 'frozenset(("add", "mul", "sub", "no op"))', '{"add": 1, "mul": 2, "sub": 3}',
        'set("add mul sub".split())', "dict(add=1, mul=2, sub=3)", 'dict.fromkeys(["add", "mul", "sub"], 1)',
    ],
)  # fmt: skip
def test_a_table_is_found(source: str):
    assert list(tables(ast.parse(source)))


@pytest.mark.parametrize(
    "source", ["op.name in TABLE", 'file.name == "add"', '["add", "mul", "sub"]', '{"add": "mul"}']
)
def test_other_names_are_not(source: str):
    tree = ast.parse(source)
    assert not [*names_asked(tree), *tables(tree)]
