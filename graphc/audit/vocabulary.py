"""What terms are made of: leaves and operations, written as text.

A leaf is a number or an array, `x[e]` or `A[n,n]`. An operation is an op with its parameters, `permute(dims=(1,0))`, or
a function in the op language, `f(F, x, y)`: one of `graphc.audit.functions`, or `module:function` of one's own.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from graphc.audit import functions
from graphc.errors import AuditError
from graphc.ops import OPS

ELEMENTS = "e"  # the extent of arrays that are looked at element by element
# letter of an extent -> (small: what values are computed on, large: what costs are asked for)
EXTENTS: Mapping[str, tuple[int, int]] = {ELEMENTS: (1024, 1000), "n": (4, 100), "k": (2, 10)}


class Leaf(NamedTuple):
    """A number, or an input of a shape that is given by letters (`EXTENTS`)."""

    text: str
    letters: tuple[str, ...] = ()
    number: float | None = None

    def shape(self, *, large: bool) -> tuple[int, ...]:
        """The extents: those that costs are asked for, or those that values are computed on."""
        return tuple(EXTENTS[letter][large] for letter in self.letters)


def letters_of(shape: Sequence[int]) -> tuple[str, ...] | None:
    """The letters of a shape on which values are computed; None if an extent has none."""
    letters = {small: letter for letter, (small, _) in EXTENTS.items()}
    return tuple(letters[n] for n in shape) if all(n in letters for n in shape) else None


class Operation(NamedTuple):
    """A function of `arity` arrays: `apply(F, *operands)`, for ndarrays and for Symbols."""

    name: str
    arity: int
    apply: Callable[..., Any]
    params: str = ""
    commutative: bool = False


class Vocabulary(NamedTuple):
    """The leaves and operations that terms are made of."""

    leaves: tuple[Leaf, ...]
    operations: tuple[Operation, ...]


# name -> leaves and operations
VOCABULARIES: Mapping[str, tuple[str, str]] = {
    "scalars": ("x[e] y[e] 1", "add sub mul div neg abs exp log square sqrt reciprocal"),
    "functions": ("x[e] y[e] 1", "add sub mul neg exp log log1p expm1 sigmoid softplus tanh relu sqrt square"),
    "choices": ("x[e] y[e] 0", "maximum minimum where lt le eq logical_not logical_and abs neg relu"),
    "matrices": (
        "A[n,n] B[n,n] x[n]",
        "add matmul permute(dims=(1,0)) inv(checked=False) diagonal diag trace rows columns total",
    ),
}


def vocabulary(leaves: str, operations: str) -> Vocabulary:
    """The vocabulary that two texts describe.

    Raises AuditError for what is no leaf, no op, no parameter of an op, or no function.
    """
    return Vocabulary(tuple(map(_leaf, leaves.split())), tuple(map(_operation, _split(operations))))


def _leaf(text: str) -> Leaf:
    name, bracket, rest = text.partition("[")
    if bracket and rest.endswith("]") and name.isidentifier():
        letters = tuple(letter for letter in rest[:-1].split(",") if letter)
        if all(letter in EXTENTS for letter in letters):
            return Leaf(name, letters)
    try:
        return Leaf(text, number=float(text))
    except ValueError:
        extents = ", ".join(EXTENTS)
        raise AuditError(f"'{text}' is no leaf. Remedy: a number, or an array as x[e]; extents are {extents}") from None


def _split(text: str) -> Sequence[str]:
    """The words of a text; blanks in brackets separate none."""
    words, depth = [""], 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c.isspace() and not depth:
            words.append("")
        else:
            words[-1] += c
    return [word for word in words if word]


def _operation(text: str) -> Operation:
    if ":" in text.partition("(")[0]:
        return _own(text)
    name, bracket, params = text.partition("(")
    if not bracket and hasattr(functions, name):
        return _function(name, getattr(functions, name))
    if name not in OPS:
        raise AuditError(f"no op named '{name}'. Remedy: docs/ops.md lists them; yours is module:function")
    op = OPS[name]
    try:
        call = ast.parse(text, mode="eval").body
        given = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords} if isinstance(call, ast.Call) else {}
    except (SyntaxError, ValueError):
        raise AuditError(f"'{text}' is no operation. Remedy: write name(parameter=value, ...)") from None
    if unknown := given.keys() - op.params.keys():
        raise AuditError(f"'{name}' has no parameter '{min(unknown)}'. Remedy: it has {list(op.params)}")
    if op.several or op.variadic or op.impure or op.structured:
        raise AuditError(
            f"'{name}' is no function of a fixed number of arrays with one result. Remedy: give a function that is, "
            "module:function"
        )
    complete = {**op.params, **given}

    def apply(F: Any, *operands: Any) -> Any:
        return getattr(F, op.name)(*operands, **complete)

    return Operation(name, len(op.args), apply, params.removesuffix(")") if bracket else "", op.commutative)


def _own(text: str) -> Operation:
    """A user's function in the op language, or an op that its module declares."""
    module, _, name = text.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise AuditError(f"'{text}' cannot be loaded: {error}. Remedy: name a module and a function in it") from error
    return _operation(found.name) if found in OPS.values() else _function(name, found)


def _function(name: str, f: Callable[..., Any]) -> Operation:
    return Operation(name, len(inspect.signature(f).parameters) - 1, f)
