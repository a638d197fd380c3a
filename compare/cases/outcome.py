"""What a mode gives for a case: values, gradients, changes to the inputs; or the exception."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np

from compare.cases.sharing import Sharing
from eager.core.sparse import parts_of
from graphc.ops.aval import Aval


class Objected(NamedTuple):
    """What a mode objects to: `what`, the verdict on it, why, and who is to blame (a `Culprit`)."""

    what: str
    verdict: Any
    detail: str
    culprit: Any


@final
@dataclass(frozen=True)
class Outcome:
    """All arrays are copies, keyed by label.

    structure      the result with `Leaf` in place of tensors and numbers
    values         "result", "result.0", "result.loss": the tensors and numbers of the result
    declared       the shape and dtype that each of `values` claims to have
    requires_grad  whether each of `values` can be differentiated
    gradients      "gradient of w": zeros where the result does not depend on the input; masked where not computed
    changes        "w after the call", "w.grad after the call": inputs that the call has changed; and the tensors and
                   numbers in `state`
    state          "self.count after the call": Python state that the call has changed, with `Leaf` likewise
    sharing        how tensors after the call belong together (see `sharing_of`); None for modes that make arrays
    drawn          what the default generator gives next; None for modes that leave it alone
    error          the exception that the mode raised, with nothing else filled in
    error_bars     for some labels, the mode's own estimate of its error
    silent         why the mode has no opinion
    objections     of a mode that has no result of its own but judges what the program runs; None for any other
    reached        "result.0": the inputs that a gradient arrives at, if it alone is differentiated; also for "all" of
                   them. None for modes without a tape, whose gradients are zeros there
    classes        the class of each of `values` that is a tensor; empty for modes that make arrays
    """

    structure: Any = None
    values: Mapping[str, np.ndarray] = field(default_factory=dict)
    declared: Mapping[str, Aval] = field(default_factory=dict)
    requires_grad: Mapping[str, bool] = field(default_factory=dict)
    gradients: Mapping[str, np.ndarray] = field(default_factory=dict)
    changes: Mapping[str, np.ndarray] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    sharing: Sharing | None = None
    drawn: bytes | None = None
    error: Exception | None = None
    error_bars: Mapping[str, np.ndarray] = field(default_factory=dict)
    silent: str = ""
    objections: tuple[Objected, ...] | None = None
    reached: Mapping[str, frozenset[str] | str] | None = None
    classes: Mapping[str, type] = field(default_factory=dict)

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that has a label."""
        return {**self.values, **self.gradients, **self.changes}


class Leaf:
    """Stands for a tensor or a number in a structure. All are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Leaf)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "tensor"


def flatten(tree: Any, is_leaf: Callable[[Any], bool], path: str = "result") -> tuple[Any, dict[str, Any]]:
    """(`tree` with `Leaf` in place of each leaf, the leaves by path), left to right."""
    leaves: dict[str, Any] = {}

    def keep(leaf: Any, at: str) -> Leaf:
        leaves[at] = leaf
        return Leaf()

    return map_leaves(tree, is_leaf, keep, path), leaves


def map_leaves(
    tree: Any, is_leaf: Callable[[Any], bool], replaced: Callable[[Any, str], Any], path: str = "result"
) -> Any:
    """`tree` with `replaced(leaf, its path)` in place of each leaf, left to right."""

    def visit(value: Any, at: str) -> Any:
        if (parts := parts_of(value)) is not None:  # a sparse tensor
            return visit((value._d.layout, value._d.shape, dict(parts)), at)
        if is_leaf(value):
            return replaced(value, at)
        if isinstance(value, dict):
            return {key: visit(item, f"{at}.{key}") for key, item in value.items()}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            fields = zip(type(value)._fields, value, strict=True)  # type: ignore[attr-defined]
            return type(value)(*(visit(item, f"{at}.{name}") for name, item in fields))
        if isinstance(value, (tuple, list)):
            return type(value)(visit(item, f"{at}.{i}") for i, item in enumerate(value))
        if _is_record(value):
            made = copy.copy(value)
            for name in _fields(value):
                object.__setattr__(made, name, visit(getattr(value, name), f"{at}.{name}"))
            return made
        return value

    return visit(tree, path)


def is_array(value: Any) -> bool:
    """Whether a value is a NumPy array of numbers."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "biufc"


def _is_record(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, (type, Leaf))


def _fields(record: Any) -> list[str]:
    return [f.name for f in dataclasses.fields(record) if hasattr(record, f.name)]


def is_opaque(value: Any) -> bool:
    """Whether a value equals nothing but itself, and two runs cannot have the same; or is a set of such."""
    if isinstance(value, (set, frozenset)):
        return any(map(is_opaque, value))
    # tensors, and what stands for them, are in no set that two runs share
    return type(value).__eq__ is object.__eq__ or type(value).__name__ in ("Tensor", "Parameter", "Slot")


def opaque_in(structure: Any) -> str:
    """What in a structure is opaque; "" if nothing is."""
    found: dict[str, Any] = {}
    map_leaves(structure, is_opaque, lambda value, at: found.setdefault(at, value))
    return ", ".join(f"{at} is a {type(value).__name__}" for at, value in found.items())


def is_number(value: Any) -> bool:
    """Whether a value is a number that rounding may touch, or one like it: no bool."""
    return type(value) in (int, float, complex)


def same_structure(a: Any, b: Any) -> bool:
    """Whether two structures nest alike and hold equal values."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_structure(a[key], b[key]) for key in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(same_structure(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray):
        return bool(np.array_equal(a, b))
    if _is_record(a):
        names = _fields(a)
        return names == _fields(b) and all(same_structure(getattr(a, name), getattr(b, name)) for name in names)
    if is_opaque(a):
        return not isinstance(a, (set, frozenset)) or len(a) == len(b)
    return bool(a == b) or (a != a and b != b)


def largest_difference(a: np.ndarray, b: np.ndarray) -> float:
    """The largest distance between elements, of two arrays of one shape, that are finite in both.

    >>> largest_difference(np.array([1.0, np.nan]), np.array([1.5, 2.0]))
    0.5
    """
    a, b = (np.ma.getdata(x).astype(complex if x.dtype.kind == "c" else float) for x in (a, b))
    known = np.isfinite(a) & np.isfinite(b)
    with np.errstate(over="ignore"):
        return float(np.max(np.abs(np.where(known, a, 0) - np.where(known, b, 0)), initial=0.0))
