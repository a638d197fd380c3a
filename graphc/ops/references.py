"""The independent references of ops, as functions: for tests, and to say which of two forms of an op is wrong."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.ops.spec import Op


def reference_of(op: Op) -> Callable[..., Any]:
    """The reference as a function of arrays and parameters; a function of `math` is applied to each element.

    LookupError if the declaration names none, or none that exists.
    """
    if op.ref is None:
        raise LookupError(f"{op.name} has no reference")
    if not isinstance(op.ref, str):
        return op.ref
    path = op.ref.split(".")
    for length in range(len(path) - 1, 0, -1):
        try:
            module = importlib.import_module(".".join(path[:length]))
        except ModuleNotFoundError:
            continue
        found: Any = functools.reduce(getattr, path[length:], module)
        return np.vectorize(found, otypes=[float]) if path[0] == "math" else found
    raise LookupError(f"{op.name}: the reference {op.ref} names no module")
