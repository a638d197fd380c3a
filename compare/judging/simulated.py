"""Runs of a Python program whose ops round at random, as those of another machine might.

`Yardstick` makes such runs of a graph. Here the same errors are made in eager's own ops, of what is more than a graph:
loops, optimizers, sessions of several calls.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from compare.judging.numeric import Rounding
from compare.judging.tolerance import RUNS, TOGETHER
from compare.judging.yardstick import spread
from eager.core import state
from eager.engine import dispatch
from graphc.ir import Graph
from graphc.ir.builder import Builder
from graphc.ops import Op
from graphc.ops.aval import aval_of, results_of
from graphc.ops.dtypes import is_inexact
from graphc.ops.interpret import run_kernel, with_defaults
from graphc.ops.spec import OPS
from graphc.scoped import attribute


class _Machine:
    """The kernels of a machine that rounds otherwise: `Rounding`, for one op at a time."""

    def __init__(self, seed: int, together: float = 0.0):
        self._rng = np.random.default_rng(seed)
        self._together = together

    def run(self, op: Op, arrays: Sequence[np.ndarray], params: Any) -> Any:
        if op.structured or op.view or not any(is_inexact(a.dtype) for a in arrays):
            return run_kernel(op, arrays, params)
        graph = _alone(op, arrays, params)
        node = graph.nodes[len(arrays)]
        if not any(is_inexact(aval.dtype) for aval in node.results):
            return run_kernel(op, arrays, params)
        rounding = Rounding(graph, 0, together=self._together)
        rounding._rng = self._rng
        given = rounding.operands(node, list(arrays))
        given = [b.astype(a.dtype, copy=False) for a, b in zip(arrays, given, strict=True)]
        value = run_kernel(op, given, params)
        pairs = zip(results_of(rounding.result(node, value, given)), results_of(value), strict=True)
        found = tuple(shaken.astype(plain.dtype, copy=False) for shaken, plain in pairs)
        return found if op.several else found[0]


class _Language:
    """The op language on ndarrays, as gradient rules use it, on such a machine."""

    def __init__(self, machine: _Machine):
        self._machine = machine

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = OPS[name]

        def call(*operands: Any, **params: Any) -> Any:
            if not all(isinstance(x, (np.ndarray, np.generic)) for x in operands):  # a Python number, a list of arrays
                return op.kernel(*operands, **params)
            return self._machine.run(op, [np.asarray(x) for x in operands], with_defaults(op, params))

        setattr(self, name, call)
        return call


def _alone(op: Op, arrays: Sequence[np.ndarray], params: Any) -> Graph:
    """The graph of one call."""
    builder = Builder()
    inputs = [builder.input(f"x{i}", aval_of(a)) for i, a in enumerate(arrays)]
    inferred = op.rule.infer(op, [aval_of(a) for a in arrays], params)
    builder.append(op, tuple(x.id for x in inputs), params, inferred if op.several else (inferred,))
    return builder.graph("call", ())


@contextlib.contextmanager
def simulated(seed: int, together: float = 0.0) -> Iterator[None]:
    """Context: eager's ops, and the gradient rules of `backward()`, round at random. Its fast paths are closed."""
    machine = _Machine(seed, together)
    with contextlib.ExitStack() as stack:
        closing = state.Closing()
        stack.callback(closing.set, False)
        closing.set(True)
        for name, value in (("run_kernel", machine.run), ("F", _Language(machine)), ("double_ops", _Plain)):
            stack.enter_context(attribute(dispatch, name, value))
        yield


class _Plain:
    """`dispatch.double_ops` without generated code."""

    @staticmethod
    def get(op: Op) -> Callable[..., Any]:
        return lambda *operands, **params: dispatch.plain_or_trace(op, operands, params)

    @staticmethod
    def reflected(op: Op) -> Callable[..., Any]:
        return lambda last, first: dispatch.plain_or_trace(op, (first, last), {})


def runs(program: Callable[[], Any]) -> list[Any]:
    """What `program` gives on machines that round otherwise, as many as a yardstick of `compare` takes."""
    found = []
    for seed, together in (*((seed, 0.0) for seed in range(RUNS)), *((0, sign) for sign in TOGETHER)):
        with simulated(seed, together):
            found.append(program())
    return found


def noise_in(others: Sequence[Any], value: np.ndarray) -> np.ndarray | None:
    """The spread of what `runs` have made of `value` (see `tolerance.judge`); None if it is another array in some."""
    arrays = [np.asarray(other) for other in others]
    if not arrays or any(a.shape != value.shape or a.dtype != value.dtype for a in arrays):
        return None
    return np.asarray(functools.reduce(lambda noise, a: spread(a, value, noise), arrays, np.False_))
