"""Eager programs under simulated rounding: what of a recorded outcome is an answer, and what only rounding.

`compare` judges a graph by runs with random errors of the size that a backend makes at each op. Here the same errors
(`compare.judging`) are made in eager's own ops, of a program that is more than a graph: loops, optimizers, printed
text. A number that moves with them says which machine ran the program; one that does not is the program's.

Nothing here is run for a program that agrees with what is expected of it.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from compare.judging.numeric import Rounding
from compare.judging.tolerance import RUNS, SAFETY, TOGETHER, judge
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
    before = dispatch.run_kernel, dispatch.F, dispatch.double_ops
    closing = state.Closing()
    closing.set(True)
    dispatch.run_kernel, dispatch.F, dispatch.double_ops = machine.run, _Language(machine), _Plain
    try:
        yield
    finally:
        dispatch.run_kernel, dispatch.F, dispatch.double_ops = before
        closing.set(False)


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


def explained(x: np.ndarray, y: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
    """Where rounding explains that `x` is not `y`, by what it has made of `y` in `others`; elementwise.

    It is for `compare` to say: see `compare.judging.tolerance.judge`.
    """
    others = [np.asarray(o) for o in others]
    if not others or any(o.shape != y.shape or o.dtype != y.dtype for o in others):
        return np.zeros(y.shape, bool)
    noise = functools.reduce(lambda noise, o: spread(o, y, noise), others, np.False_)
    bad = judge(x, y, y, np.asarray(noise)).bad
    return np.full(y.shape, True) if bad is None else ~bad


def assert_agree(found: Sequence[np.ndarray], program: Callable[[], Sequence[np.ndarray]], rtol: float, atol: float):
    """Assert that `found` are the arrays that `program` gives eagerly, but for rounding of its ops."""
    expected = program()
    assert len(found) == len(expected)
    others: list[Sequence[np.ndarray]] = []
    for k, (x, y) in enumerate(zip(found, expected, strict=True)):
        wrong = ~np.isclose(x, y, rtol, atol, equal_nan=True)
        if wrong.any():
            others = others or runs(program)
            wrong &= ~explained(x, y, [other[k] for other in others])
        assert not wrong.any(), f"array {k}: {x[wrong]}, expected {y[wrong]}"


# --- text

_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?(?![\w])|(?<![\w.])-?(?:inf|nan)\b|\b(?:True|False)\b"
)


def parted(text: str) -> tuple[list[str], list[str]]:
    """The words between the numbers of a text, without regard to spaces, and the numbers, True and False among them.

    >>> parted("y = -0.00 + 2 x")
    (['y=', '+', 'x'], ['-0.00', '2'])
    """
    return ["".join(words.split()) for words in _NUMBER.split(text)], _NUMBER.findall(text)


def text_explained(expected: str, got: str, others: Sequence[str]) -> bool:
    """Whether rounding explains each character in which a printed text is not the one that was recorded.

    Only numbers with a fraction, and True and False, may differ: where a run with simulated rounding does not print
    what `got` has (`others` are their texts); numbers by `SAFETY` deviations, or by a unit of the last digit.
    """
    words, numbers = parted(expected)
    own_words, own = parted(got)
    parts = [parted(other) for other in others]
    if words != own_words or any(w != words for w, _ in parts):
        return False
    for k, (recorded, printed) in enumerate(zip(numbers, own, strict=True)):
        moved = [numbers_of[k] for _, numbers_of in parts]
        if recorded != printed and not _token_explained(recorded, printed, moved):
            return False
    return bool(others) and numbers != own


def _token_explained(recorded: str, printed: str, moved: Sequence[str]) -> bool:
    if len({printed, *moved}) == 1:
        return False
    if {recorded, printed} == {"True", "False"}:
        return True
    if not any(c in recorded + printed for c in ".ein"):  # integers, which rounding does not touch
        return False
    with np.errstate(invalid="ignore"):
        x, y, others = float(recorded), float(printed), np.array([float(m) for m in moved])
        centre = float(np.median(others))
        bound = SAFETY * float(np.sqrt(np.mean(np.square(others - centre))))
        if bound:  # what is printed is rounded once more
            bound = max(bound, _unit(recorded), _unit(printed))
    return max(abs(x - centre), abs(y - centre)) <= 1.001 * bound  # False of nan


def _unit(number: str) -> float:
    """One unit of the last digit of a number as it is printed.

    >>> _unit("-1.250"), _unit("3.5e-02")
    (0.001, 0.001)
    """
    digits, _, exponent = number.partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
