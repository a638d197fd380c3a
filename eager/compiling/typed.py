"""Whether a value is of a type with parameters: `list[int]`, `Dict[str, Tensor]`, `Optional[int]`."""

from __future__ import annotations

from types import UnionType
from typing import Any, Union, get_args, get_origin


def is_a(value: Any, kind: Any) -> bool:
    """As `isinstance`, which does not look into lists, dicts and tuples. False for other types with parameters."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin is None:
        return isinstance(value, kind)
    if origin in (Union, UnionType):
        return any(is_a(value, one) for one in inside)
    if origin is list:
        return isinstance(value, list) and all(is_a(one, inside[0]) for one in value)
    if origin is dict:
        keys, values = inside
        return isinstance(value, dict) and all(is_a(k, keys) and is_a(v, values) for k, v in value.items())
    if origin is tuple:
        fits = isinstance(value, tuple) and len(value) == len(inside)
        return fits and all(map(is_a, value, inside))
    return False
