"""What a function reads from its surroundings besides tensors: Python scalars, to be guarded."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from graphc.capture.tracer import Guard

SCALARS = (bool, int, float, complex, str, type(None))


def scalar_guards(fn: Callable[..., Any]) -> Iterator[Guard]:
    """Guards on the Python scalars among the closure variables and globals that `fn` names.

    A graph has their values built in; a call after one has changed must trace again.
    """
    function = inspect.unwrap(getattr(fn, "__func__", fn))
    code = getattr(function, "__code__", None)
    if code is None:
        return
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:
            continue  # a variable that is not assigned yet
        if isinstance(value, SCALARS):
            yield Guard(lambda cell=cell: cell.cell_contents, value)
    names = function.__globals__
    for name in code.co_names:
        if name in names and isinstance(names[name], SCALARS):
            yield Guard(lambda name=name: names.get(name), names[name])
