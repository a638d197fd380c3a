"""Arguments and results of control flow as flat lists of tensors, with what held them. Numbers are leaves, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import eager
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.strides import contiguous, is_contiguous
from graphc import errors
from graphc.capture.number import Number
from graphc.capture.tree import children, rebuilt
from graphc.ops.aval import Aval

_NUMBERS = (bool, int, float, complex, np.generic)


class Nest(NamedTuple):
    """A tree, flat.

    template  the tree that the leaves were taken from
    leaves    its tensors; numbers have become tensors
    paths     the place of each leaf in the tree, such as ".h" or "[0]['w']"
    weak      whether a leaf was a Python number, which takes the dtype of what it meets
    """

    template: Any
    leaves: list[Tensor]
    paths: list[str]
    weak: list[bool]

    def fill(self, leaves: Sequence[Any]) -> Any:
        """The tree, with other leaves."""
        return _fill(self.template, iter(leaves))

    @property
    def structure(self) -> Any:
        """A value that is equal for trees that differ in their leaves only."""
        return _structure(self.template)

    def part(self, index: int) -> Nest:
        """Part number `index` of a tree that is a tuple."""
        first = sum(len(list(_leaves(tree, "", ""))) for tree in self.template[:index])
        tree = self.template[index]
        paths = [path for _, path in _leaves(tree, "", "")]
        end = first + len(paths)
        return Nest(tree, self.leaves[first:end], paths, self.weak[first:end])

    @property
    def avals(self) -> list[Aval]:
        return [aval_of_tensor(t) for t in self.leaves]


def aval_of_tensor(tensor: Tensor) -> Aval:
    """Shape and dtype of a tensor, traced or not."""
    return Aval(tuple(tensor._d.shape), tensor._dtype())


def nest(tree: Any, what: str) -> Nest:
    """`tree`, flat. Raises TypeError, which says `what` it is, for a leaf that is neither tensor, number nor None."""
    found = list(_leaves(tree, "", what))
    tensors = [_tensor(leaf) for leaf, _ in found]
    weak = [not isinstance(leaf, (Tensor, np.ndarray, np.generic)) for leaf, _ in found]
    return Nest(tree, tensors, [path for _, path in found], weak)


def unshared(tree: Any, what: str) -> Any:
    """`tree` with tensors of its own, in row-major order: as operations of a graph return them. TypeError as `nest`."""
    return _fill(tree, (own(leaf) if isinstance(leaf, Tensor) else leaf for leaf, _ in _leaves(tree, "", what)))


def own(tensor: Tensor) -> Tensor:
    """A copy that shares no memory with `tensor`, in row-major order; gradients flow through it."""
    return E.clone(tensor) if is_contiguous(tensor) else contiguous(tensor)


def _is_leaf(x: Any) -> bool:
    return isinstance(x, (Tensor, np.ndarray, *_NUMBERS)) or type(x) is Number


def _tensor(leaf: Any) -> Tensor:
    if isinstance(leaf, Tensor):
        return leaf
    if type(leaf) is Number:
        return leaf.tensor()
    return eager.tensor(leaf)


def _leaves(tree: Any, path: str, what: str) -> Iterator[tuple[Any, str]]:
    if _is_leaf(tree):
        yield tree, path
        return
    inside = children(tree)
    if inside is None:
        if tree is not None:
            raise TypeError(errors.NO_ARRAY.format(what=what, path=path, kind=type(tree).__name__))
        return
    for name, value in inside:
        yield from _leaves(value, f"{path}{_step(tree, name)}", what)


def _step(tree: Any, name: str) -> str:
    if isinstance(tree, dict):
        return f"[{name!r}]"
    named = not isinstance(tree, (tuple, list)) or hasattr(tree, "_fields")
    return f".{name}" if named else f"[{name}]"


def _fill(tree: Any, leaves: Iterator[Any]) -> Any:
    if _is_leaf(tree):
        return next(leaves)
    inside = children(tree)
    return tree if inside is None else rebuilt(tree, [_fill(value, leaves) for _, value in inside])


def _structure(tree: Any) -> Any:
    if _is_leaf(tree):
        return "*"
    inside = children(tree)
    if inside is None:
        return None
    return (type(tree).__name__, tuple((name, _structure(value)) for name, value in inside))


def shown(structure: Any) -> str:
    """A structure as messages show it: `dict(h=*, c=*)`."""
    if not isinstance(structure, tuple):
        return str(structure)
    kind, inside = structure
    plain = kind in ("tuple", "list")
    return f"{kind}({', '.join(shown(part) if plain else f'{name}={shown(part)}' for name, part in inside)})"


def check_structure(what: str, got: Nest, expected: Nest) -> None:
    """Raise TypeError unless two nests have the same containers."""
    if got.structure != expected.structure:
        raise TypeError(
            errors.OTHER_STRUCTURE.format(what=what, got=shown(got.structure), expected=shown(expected.structure))
        )


def check_leaves(what: str, got: Nest, expected: Sequence[Aval], where: str) -> None:
    """Raise TypeError, naming the first leaf, unless the leaves have the shapes and dtypes `expected`."""
    for path, aval, wanted in zip(got.paths, got.avals, expected, strict=True):
        if aval != wanted:
            raise TypeError(
                errors.OTHER_LEAF.format(
                    what=what, path=path, got=aval, expected=wanted, used=where or "an unknown line"
                )
            )
