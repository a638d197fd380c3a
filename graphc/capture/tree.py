"""Arguments and results as nests of tuples, lists, dicts and namedtuples, with Tensors at the leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from eager.tensor import Tensor


def map_tensors(tree: Any, fn: Callable[[Tensor, str], Any], path: str = "") -> Any:
    """`tree` with `fn(tensor, path)` in place of each tensor; containers are rebuilt, other values kept."""
    if isinstance(tree, Tensor):
        return fn(tree, path)
    if isinstance(tree, dict):
        return {key: map_tensors(value, fn, _join(path, key)) for key, value in tree.items()}
    fields = getattr(tree, "_fields", None)
    if fields is not None and isinstance(tree, tuple):
        return type(tree)(*(map_tensors(v, fn, _join(path, f)) for f, v in zip(fields, tree, strict=True)))
    if isinstance(tree, (tuple, list)):
        return type(tree)(map_tensors(value, fn, _join(path, i)) for i, value in enumerate(tree))
    return tree


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def tensors_of(tree: Any) -> Iterator[Tensor]:
    """The tensors in `tree`, in the order in which `map_tensors` visits them."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from tensors_of(value)
    elif isinstance(tree, (tuple, list)):
        for value in tree:
            yield from tensors_of(value)
