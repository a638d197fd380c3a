"""Programs that are run eagerly and compiled, and have to do the same.

A program is a function of `compile`: the identity in one run, `graphc.compile` in the other. It makes its own state,
calls what it compiles several times, and returns all that can be observed (results, gradients, what was written,
exceptions through `attempt`), in any nest. Both runs start from the same seed.

Numbers agree if they do up to `RTOL` and `ATOL`. Where they do not, eager runs again with simulated rounding
(`tests.rounding`), and what moves with that is judged by how far it moves: a gradient that is nothing but rounding, of
which Adam makes a step of full size, has other values on every machine.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import eager as torch
import graphc
from graphc.errors import CaptureError
from tests import rounding

Program = Callable[[Callable[..., Any]], Any]
PROGRAMS: dict[str, Program] = {}
REFUSED: dict[Program, str] = {}
RTOL, ATOL = 2e-5, 1e-6


def refused(message: str) -> Callable[[Program], Program]:
    """Register a program that eager runs, and that is a CaptureError with this text compiled."""

    def register(fn: Program) -> Program:
        REFUSED[program(fn)] = message
        return fn

    return register


def program(fn: Program) -> Program:
    """Register a program under the name of its file and its own."""
    name = f"{fn.__module__.rpartition('.')[2]}.{fn.__name__}"
    assert name not in PROGRAMS, name
    PROGRAMS[name] = fn
    return fn


def attempt(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a call, or ("raised", type, first line of the message)."""
    try:
        return fn(*args, **kwargs)
    except Exception as error:
        return "raised", type(error).__name__, str(error).partition("\n")[0]


def state(tensor: Any) -> Any:
    """A tensor as it is now: a copy of its values, dtype, whether it requires grad, and its gradient."""
    grad = tensor.grad if tensor.is_leaf else None
    return tensor.detach().clone(), tensor.requires_grad, None if grad is None else grad.detach().clone()


def snapshot(value: Any) -> Any:
    """A nest of plain data that two runs can be compared by."""
    if isinstance(value, torch.Tensor):
        array = np.array(value.detach().numpy()) if value.dtype != torch.bfloat16 else value.detach().float().numpy()
        return "tensor", str(value.dtype), tuple(value.shape), value.requires_grad, array
    if isinstance(value, np.ndarray):
        return "ndarray", str(value.dtype), value.copy()
    if isinstance(value, dict):
        return type(value).__name__, [(key, snapshot(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return type(value).__name__, [snapshot(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, [
            (f.name, snapshot(getattr(value, f.name))) for f in dataclasses.fields(value)
        ]  # fmt: skip
    return value


def difference(a: Any, b: Any, rounded: Callable[[], list[Any]] = list, path: tuple[Any, ...] = ()) -> str:
    """Where two snapshots differ; "" if they agree up to rounding.

    rounded: gives snapshots like `a`, of runs with simulated rounding
    """
    shown = "".join(f"[{i}]" for i in path)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{shown}: {a.dtype}{a.shape} and {b.dtype}{b.shape}"
        wrong = ~np.isclose(a, b, RTOL, ATOL, equal_nan=True) if a.dtype.kind in "fc" else np.asarray(a != b)
        return f"{shown}: {a} and {b}" if (wrong & ~_rounding(a, b, rounded, path, wrong)).any() else ""
    if type(a) is not type(b):
        return f"{shown}: {a!r} and {b!r}"
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return f"{shown}: {len(a)} and {len(b)} elements: {a!r} and {b!r}"
        found = (difference(x, y, rounded, (*path, i)) for i, (x, y) in enumerate(zip(a, b, strict=True)))
        return next(filter(None, found), "")
    if isinstance(a, (float, complex)):
        wrong = ~np.isclose(a, b, RTOL, ATOL, equal_nan=True)
        return f"{shown}: {a!r} and {b!r}" if wrong and not _rounding(a, b, rounded, path, wrong) else ""
    return "" if a == b else f"{shown}: {a!r} and {b!r}"


def _rounding(a: Any, b: Any, rounded: Callable[[], list[Any]], path: tuple[Any, ...], wrong: Any) -> np.ndarray:
    """Where rounding explains that `a` is not `b`, which lie at `path` of their snapshots."""
    if not wrong.any():
        return wrong
    others = [_at(snapshot, path) for snapshot in rounded()]
    return rounding.explained(np.asarray(b), np.asarray(a), [np.asarray(o) for o in others])


def _at(snapshot: Any, path: tuple[Any, ...]) -> Any:
    """What is at `path` of a snapshot; None if it has no such place: rounding may send a program another way."""
    for i in path:
        if not isinstance(snapshot, (list, tuple)) or i >= len(snapshot):
            return None
        snapshot = snapshot[i]
    return snapshot


def run(fn: Program, compile: Callable[..., Any]) -> Any:
    """What can be observed of a program."""
    torch.manual_seed(0)
    return snapshot(fn(compile))


def rounded_runs(fn: Program) -> list[Any]:
    """What can be observed of a program that runs eagerly, with simulated rounding."""
    return rounding.runs(lambda: run(fn, _unchanged))


def _unchanged(fn: Any = None, **options: Any) -> Any:
    """In place of `graphc.compile`."""
    return fn if fn is not None else (lambda f: f)


def check(fn: Program, **options: Any) -> str:
    """How the run compiled with these `options` differs from the eager one; "" if it does not."""

    def compile(f: Any = None, **given: Any) -> Any:
        return graphc.compile(f, **options, **given)

    eagerly = run(fn, _unchanged)
    if fn not in REFUSED:
        return difference(eagerly, run(fn, compile), functools.cache(lambda: rounded_runs(fn)))
    try:
        run(fn, compile)
    except CaptureError as error:
        return "" if REFUSED[fn] in str(error) else f"another CaptureError: {error}"
    return "no CaptureError"
