"""`bench`: what each mode costs, from the first call on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from compare.bench_report import BOTH, FORWARD, BenchReport, Timing
from compare.case import Case
from compare.equivalence import check
from compare.report import Report
from eager import autograd
from eager.tensor import Tensor
from graphc.capture.tree import tensors_of
from graphc.compiling.compiled import compile
from graphc.ir import Ref
from graphc.lowering import block, lower
from graphc.lowering.reference import ReverseMode
from graphc.passes import optimize

ROUND = 1e-3  # seconds that one mode is timed for in one round, at least
LEAST_ROUNDS = 7


class DisagreementError(RuntimeError):
    """The modes do not agree, so their times cannot be compared. `report` says where they part."""

    def __init__(self, report: Report):
        super().__init__(f"the modes do not agree, so they are not timed (force=True does it all the same):\n{report}")
        self.report = report


class Contender(NamedTuple):
    """A mode made ready to be timed: `call` runs it once and awaits the result."""

    mode: str
    call: Callable[[], Any]
    parts: Callable[[], dict[str, float]]


def bench(
    fn: Callable[..., Any],
    *args: Any,
    modes: Sequence[str] = ("eager", "graphc", "jax"),
    min_time: float = 0.2,
    force: bool = False,
    seed: int = 0,
    **kwargs: Any,
) -> BenchReport:
    """Time `fn(*args, **kwargs)` in each mode, forward and, where an input requires grad, forward and backward.

    modes     "eager", "graphc" (`graphc.compile`), "jax" (`jax.jit` of the captured graph without any pass, and
              JAX's own reverse mode)
    min_time  seconds of steady state for each row; rounds of the modes are interleaved
    force     time functions that do not agree

    Raises DisagreementError unless `check` finds that the modes agree, ValueError for an unknown mode.
    """
    if unknown := [m for m in modes if m not in _MAKERS]:
        raise ValueError(f"unknown mode '{unknown[0]}'; known are {', '.join(_MAKERS)}")
    report = check(fn, *args, modes=("eager", "graph", "compiled"), seed=seed, **kwargs)
    if not (report.ok or force):
        raise DisagreementError(report)
    case = Case(fn, args, kwargs, seed)
    differentiable = bool(case.wrt) and case.program is not None and bool(case.joint.seeded)
    timings: list[Timing] = []
    for what in (FORWARD, BOTH) if differentiable else (FORWARD,):
        with case.preserved():
            timings += _measure(what, [_MAKERS[mode](case, what) for mode in modes], min_time)
    return BenchReport(case.name, report.ok, tuple(timings))


# --- timing


def _measure(what: str, contenders: list[Contender], min_time: float) -> list[Timing]:
    firsts = [_seconds(c.call, 1) for c in contenders]
    loops = [max(1, math.ceil(ROUND / max(_seconds(c.call, 1), 1e-9))) for c in contenders]
    samples: list[list[float]] = [[] for _ in contenders]
    spent = 0.0
    rounds = 0
    while rounds < LEAST_ROUNDS or spent < min_time * len(contenders):
        for k in range(len(contenders)):
            turn = (k + rounds) % len(contenders)  # nobody always runs after the same neighbour
            contenders[
                turn
            ].call()  # not timed: takes state that another mode has written back to where this one keeps it
            taken = _seconds(contenders[turn].call, loops[turn])
            spent += taken
            samples[turn].append(taken / loops[turn])
        rounds += 1
    medians = [float(np.median(s)) for s in samples]
    eager = next((k for k, c in enumerate(contenders) if c.mode == "eager"), None)
    timings: list[Timing] = []
    for k, c in enumerate(contenders):
        low, high = (float(q) for q in np.quantile(samples[k], (0.25, 0.75)))
        even = None if eager is None or k == eager else break_even(firsts[k], medians[k], firsts[eager], medians[eager])
        calls = rounds * loops[k]
        timings.append(Timing(c.mode, what, firsts[k], c.parts(), medians[k], low, high, calls, even))
    return timings


def break_even(first: float, steady: float, eager_first: float, eager_steady: float) -> float:
    """The number of calls from which on a mode has cost less in all than eager; inf if it never does."""
    if first <= eager_first and steady <= eager_steady:
        return 1.0
    if steady >= eager_steady:
        return math.inf
    return 1.0 + math.ceil((first - eager_first) / (eager_steady - steady))


def _seconds(call: Callable[[], Any], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        call()
    return time.perf_counter() - start


# --- contenders


def _eager(case: Case, what: str) -> Contender:
    return Contender("eager", _tape_call(case, case.fn, what), dict)


def _graphc(case: Case, what: str) -> Contender:
    return Contender("graphc", _tape_call(case, compile(case.fn), what), lambda: _parts(case, what))


def _tape_call(case: Case, fn: Callable[..., Any], what: str) -> Callable[[], Any]:
    """A call of `fn` on the case's tensors; with gradients through the tape if `what` says so."""
    args, kwargs = case.args, case.kwargs
    if what == FORWARD:
        return lambda: _awaited(fn(*args, **kwargs))
    seeded = case.joint.seeded
    cotangents = [Tensor._wrap(a) for a in case.operands[len(case.operands) - len(seeded) :]]
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


def _parts(case: Case, what: str) -> dict[str, float]:
    """Where the first call's time goes, measured on a compilation of its own."""
    joint = case.joint
    start = time.perf_counter()
    program = case.captured()
    captured = time.perf_counter()
    optimized = optimize(joint.graph if what == BOTH else program.graph)
    passed = time.perf_counter()
    times = lower(optimized).compile()
    ours = {"capture": captured - start, "passes": passed - captured}
    return {**ours, **{_JAX_PARTS[name]: s for name, s in times.items()}}


_JAX_PARTS = {"trace": "jax trace", "lower": "lower", "xla": "xla"}


@final
class _PlainJax:
    """The captured graph as it is, under `jax.jit`, with JAX's own reverse mode."""

    def __init__(self, case: Case, what: str):
        joint, program = case.joint, case.program
        assert program is not None
        ids = joint.graph.outputs[: len(joint.labels) - (len(case.wrt) if joint.seeded else 0)]
        self._graph = program.graph.replace(program.graph.nodes, tuple(Ref(id) for id in ids))
        split = len(program.graph.inputs)
        self._arrays, self._cotangents = case.operands[:split], case.operands[split:]
        wrt = [p for i in case.wrt for p in i.positions]
        self._new_reverse = lambda: ReverseMode(self._graph, wrt, joint.seeded, program.recorded)
        self._reverse = self._new_reverse() if what == BOTH else None
        self._forward = lower(self._graph)

    def call(self) -> Any:
        if self._reverse is not None:
            return block(self._reverse(self._arrays, self._cotangents))
        return block(self._forward.call(*self._arrays))

    def parts(self) -> dict[str, float]:
        if self._reverse is not None:
            times = self._new_reverse().compile(self._arrays, self._cotangents)
        else:
            times = lower(self._graph).compile()
        return {_JAX_PARTS[name]: s for name, s in times.items()}


def _jax(case: Case, what: str) -> Contender:
    if case.program is None:
        raise ValueError("mode 'jax' needs a program that can be captured") from case.failure
    plain = _PlainJax(case, what)
    return Contender("jax", plain.call, plain.parts)


_MAKERS: dict[str, Callable[[Case, str], Contender]] = {"eager": _eager, "graphc": _graphc, "jax": _jax}
