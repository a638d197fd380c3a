"""Timer: the time that a statement takes. As `torch.utils.benchmark.Timer`.

Results of compiled programs arrive later than the call returns. So the statement's value, or what its last line
assigns, is awaited each time; what it leaves in other places is not.
"""

from __future__ import annotations

import ast
import enum
import sys
import textwrap
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from eager.core.pytree import flatten
from eager.core.shown import ShownObject
from eager.core.stand_ins import Deferred
from eager.core.tensor import Tensor
from eager.utils.benchmark.measurement import SPREAD, Measurement, TaskSpec
from graphc.ops.threads import number_of_threads, set_number_of_threads

timer = timeit.default_timer
AWAIT = "_await_result"
MOST_RUNS = 2147483647
ONLY_PYTHON = "torch.utils.benchmark measures Python here, not {!r}: there is no C++ interface."


class Language(enum.Enum):
    """What a statement is written in."""

    PYTHON = 0
    CPP = 1


def await_result(value: Any) -> None:
    """Wait until the tensors in a nest have been computed."""
    for leaf in [value] if isinstance(value, Tensor) else flatten(value)[0]:
        if isinstance(leaf, Tensor) and leaf._d.__class__ is Deferred:
            leaf._d.array.block_until_ready()


def awaited(stmt: str) -> str:
    """`stmt` with a call that awaits its value, or what its last line assigns to a name."""
    tree = ast.parse(stmt)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        value: ast.expr = last.value
        tree.body.pop()
    elif isinstance(last, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        target = last.targets[-1] if isinstance(last, ast.Assign) else last.target
        if not isinstance(target, ast.Name):
            return stmt
        value = ast.Name(target.id, ast.Load())
    else:
        return stmt
    tree.body.append(ast.Expr(ast.Call(ast.Name(AWAIT, ast.Load()), [value], [])))
    return ast.unparse(ast.fix_missing_locations(tree))


@contextmanager
def _threads(n: int) -> Iterator[None]:
    before = number_of_threads()
    set_number_of_threads(n)
    try:
        yield
    finally:
        set_number_of_threads(before)


def _dedented(code: str) -> str:
    return textwrap.dedent(code).removeprefix("\n").rstrip()


class Timer(ShownObject):
    """Measures `stmt`, in which `torch` and `globals` are known, after `setup`.

    ValueError unless `stmt` is Python in a string.
    label, sub_label, description, env: what tables of measurements are ordered by.
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None, label: str | None = None, sub_label: str | None = None,
        description: str | None = None, env: str | None = None, num_threads: int = 1, language: Any = Language.PYTHON,
    ):  # fmt: skip
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError(ONLY_PYTHON.format(language))
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        stmt, setup = _dedented(stmt), _dedented(setup)
        names = {"torch": sys.modules["eager"], **(globals or {}), AWAIT: await_result}
        self._timer = timeit.Timer(awaited(stmt), setup, timer, names)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)  # statistics divide by it

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Run the statement `number` times, after a hundredth of that to warm up."""
        with _threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return self._measured(number, [self._timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """Raises NotImplementedError: see `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Any = None) -> NoReturn:
        """Raises NotImplementedError: see `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        """How many times are to be measured at once, so that reading the clock does not count."""
        with _threads(self._task_spec.num_threads):
            overhead = sorted(self._timeit(0) for _ in range(5))[2]
            number = 1
            while True:
                taken = self._timeit(number)
                enough = overhead / taken <= 1e-4 and taken >= min_run_time / 1000
                if enough or taken > min_run_time or number * 10 > MOST_RUNS:
                    return number
                number *= 10

    def _repeated(
        self, number: int, done: Callable[[list[float]], bool], least: float, most: float | None, callback: Any
    ) -> Measurement:
        times: list[float] = []
        with _threads(self._task_spec.num_threads):
            while sum(times) < least or not done(times):
                times.append(self._timeit(number))
                if callback:
                    callback(number, times[-1])
                if most and sum(times) > most:
                    break
        return self._measured(number, times)

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Run blocks of as many times as hide the cost of the clock, for `min_run_time` seconds."""
        return self._repeated(self._block_size(min_run_time), bool, min_run_time, None, callback)

    def adaptive_autorange(
        self, threshold: float = SPREAD, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:  # fmt: skip
        """Run blocks until their interquartile range is less than `threshold` of the median, or for `max_run_time`."""
        number = self._block_size(0.05)

        def settled(times: list[float]) -> bool:
            return len(times) > 3 and self._measured(number, times).meets_confidence(threshold)

        return self._repeated(number, settled, min_run_time, max_run_time, callback)
