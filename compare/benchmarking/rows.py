"""The rows of a benchmark: each mode made ready to be called, and what it costs to prepare."""

from __future__ import annotations

import functools
import time
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, final

import numpy as np

from compare.benchmarking.result import BOTH, FORWARD
from compare.cases.case import Case
from compare.modes import Mode
from eager import autograd
from eager.core.tensor import Tensor
from graphc.capture.tree import tensors_of
from graphc.compiling.decorator import compile
from graphc.ir import Graph, Ref
from graphc.lowering import block, lower
from graphc.lowering.reference import ReverseMode
from graphc.passes import optimize


class Cost(NamedTuple):
    """The parts of a first call in seconds, and the bytes of results and temporaries (None: not known)."""

    parts: Mapping[str, float]
    memory: int | None


class Contender(NamedTuple):
    """A mode made ready to be timed: `call` runs it once and awaits the result; `cost` is of its preparation."""

    mode: str
    call: Callable[[], Any]
    cost: Callable[[], Cost]


class Row(NamedTuple):
    """How a contender is made of a case and a kind of call, and the modes of `check` that have to agree first."""

    make: Callable[[Case, str], Contender]
    checked: tuple[str | Mode, ...]


def _eager(case: Case, what: str) -> Contender:
    call = _tape_call(case, case.fn, what)
    return Contender("eager", call, lambda: Cost({}, _allocated(call)))


def _compiled(case: Case, what: str, strict: bool = False) -> Contender:
    call = _tape_call(case, compile(case.fn, strict=strict), what)
    return Contender("strict" if strict else "compiled", call, lambda: _compilation(case, what, strict))


def _allocated(call: Callable[[], Any]) -> int:
    """The peak of the bytes that Python and NumPy allocate in a call and have not freed yet."""
    running = tracemalloc.is_tracing()
    if not running:
        tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        call()
        return max(tracemalloc.get_traced_memory()[1] - before, 0)
    finally:
        if not running:
            tracemalloc.stop()


def _tape_call(case: Case, fn: Callable[..., Any], what: str) -> Callable[[], Any]:
    """A call of `fn` on the case's tensors; with gradients through the tape if `what` says so."""
    args, kwargs = case.args, case.kwargs
    if what == FORWARD:
        return lambda: _awaited(fn(*args, **kwargs))
    seeded = case.joint.seeded
    cotangents = [Tensor._wrap(a) for a in case.cotangents]
    wrt = [i.tensor for i in case.wrt]

    def call() -> Any:
        outputs = list(tensors_of(fn(*args, **kwargs)))
        live = [outputs[case.tensor_slots.index(k)] for k in seeded]
        return _awaited(autograd.grad(live, wrt, cotangents, allow_unused=True))

    return call


def _awaited(result: Any) -> Any:
    """`result`, once the backend has computed it; eager results are there already."""
    for tensor in tensors_of(result):
        data = tensor._d
        if data.__class__ is not np.ndarray:
            block(data.array)
    return result


def optimized(case: Case, what: str, strict: bool = False) -> Graph:
    """The program that a call of this kind comes down to, as one graph. Needs `case.program`."""
    return optimize(case.joint.graph if what == BOTH else case.captured_program.graph, strict=strict)


def _compilation(case: Case, what: str, strict: bool) -> Cost:
    """Where the first call's time goes, measured on a compilation of its own."""
    if case.program is None:
        return Cost({}, None)
    _ = case.joint
    start = time.perf_counter()
    case.captured()
    captured = time.perf_counter()
    graph = optimized(case, what, strict)
    passed = time.perf_counter()
    found = lower(graph, strict=strict).compile_measured()
    ours = {"capture": captured - start, "passes": passed - captured}
    return Cost({**ours, **found.seconds}, found.memory)


@final
class _PlainJax:
    """The captured graph as it is, under `jax.jit`, with JAX's own reverse mode."""

    def __init__(self, case: Case, what: str):
        joint, program = case.joint, case.captured_program
        ids = joint.graph.outputs[: len(joint.labels) - (len(case.wrt) if joint.seeded else 0)]
        self._graph = program.graph.replace(program.graph.nodes, tuple(Ref(id) for id in ids))
        split = len(program.graph.inputs)
        self._arrays, self._cotangents = case.operands[:split], case.cotangents
        wrt = [p for i in case.wrt for p in i.positions]
        self._new_reverse = lambda: ReverseMode(self._graph, wrt, joint.seeded, program.recorded.nodes)
        self._reverse = self._new_reverse() if what == BOTH else None
        self._forward = lower(self._graph)

    def call(self) -> Any:
        if self._reverse is not None:
            return block(self._reverse(self._arrays, self._cotangents))
        return block(self._forward.call(*self._arrays))

    def cost(self) -> Cost:
        if self._reverse is not None:
            found = self._new_reverse().compile_measured(self._arrays, self._cotangents)
        else:
            found = lower(self._graph).compile_measured()
        return Cost(found.seconds, found.memory)


_WITHOUT = "Remedy: modes= without it."


def _jax(case: Case, what: str) -> Contender:
    program = case.program
    if program is None:
        raise ValueError(f"mode 'jax.jit' needs a program that can be captured. {_WITHOUT}") from case.failure
    if what == BOTH and case.writes_leaves:
        raise ValueError(f"mode 'jax.jit' has no gradients for leaves that the program writes. {_WITHOUT}")
    if what == BOTH and program.recorded.rules is not None:
        raise ValueError(f"mode 'jax.jit' has no gradients by rules of the user's (autograd.Function). {_WITHOUT}")
    plain = _PlainJax(case, what)
    return Contender("jax.jit", plain.call, plain.cost)


ROWS: dict[str, Row] = {
    "eager": Row(_eager, ("eager",)),
    "compiled": Row(_compiled, ("compiled",)),
    "strict": Row(functools.partial(_compiled, strict=True), ("strict",)),
    "jax.jit": Row(_jax, ("graph", "jax.grad")),
}
