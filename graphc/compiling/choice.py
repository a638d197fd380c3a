"""`backend="auto"`: a program runs on NumPy until XLA has paid, or would pay, for its compilation.

To lower a graph to NumPy takes milliseconds, to compile it a second; and of small programs NumPy is the faster one. So
a program begins on NumPy. Once it has been running there for a while its time is compared with what XLA is thought to
take. It is compiled when what that would have saved so far comes to what compiling takes: at most about twice the time
of the better way is spent, however often it will be called. Then both are timed, and the faster one stays.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, final

from eager.core.tensor import Tensor
from graphc.capture.program import Program
from graphc.capture.sources import Argument
from graphc.execution.runner import Runner
from graphc.lowering.machine import Machine, machine, seconds_of_program

PATIENCE = 0.3  # seconds on NumPy, before which nothing is asked: the least that compiling takes
MARGIN = 0.95  # XLA has to be faster by so much
DOUBT = 20  # times the compilation: on NumPy, after which XLA is tried although it is not thought to be faster
TIMED = 2  # first calls, which are timed
NEVER = math.inf

FIRST = "numpy: has run for less than {seconds:.1f} s"
CALLS = "numpy ({numpy:.3g} us a call): a call of XLA takes {least:.3g} us before it does anything"
LATER = (
    "numpy ({numpy:.3g} us a call, XLA about {xla:.3g}): compiling, about {compile:.2g} s, pays from call {calls:,} on"
)
UNLIKELY = "numpy ({numpy:.3g} us a call, XLA about {xla:.3g})"
MEASURED = "{chosen}: numpy takes {numpy:.3g} us, XLA {xla:.3g}, measured; compiled in {compile:.2g} s"
UNKNOWN = "numpy: the program cannot be timed on other values than those of a call"
ONLY_XLA = "jax: {why}"


@final
class Choice:
    """Which backend one program of a compiled function runs on.

    again   from which call on it has to be asked again
    reason  what is chosen, and why
    """

    def __init__(self, runner: Runner, program: Program, compiled: Callable[[Program, list[Tensor]], Runner]):
        self._program, self._compiled = program, compiled
        self._least = NEVER
        self._timed = 0
        host = runner.forward.on_host
        self.again: float = 0 if host else NEVER
        self.reason = FIRST.format(seconds=PATIENCE) if host else ONLY_XLA.format(why=runner.unsuitable)

    def timed(self, seconds: float) -> None:
        """Note what one of the first calls has taken."""
        self._timed += 1
        self._least = min(self._least, seconds)
        if self._timed == TIMED:
            self.again = max(TIMED, PATIENCE / max(self._least, 1e-7))

    @property
    def wants_time(self) -> bool:
        return self._timed < TIMED and self.again < NEVER

    def asked(self, runner: Runner, calls: int, tensors: list[Tensor]) -> Runner:
        """The runner for the calls that follow the first `calls`: `runner`, or one of XLA."""
        numpy = _seconds(runner)
        if numpy is None:
            return self._settled(runner, UNKNOWN)
        known = machine()
        parts = _programs(runner)
        least, xla, cost = (
            sum(f(known, p.graph) for p in parts) for f in (Machine.least, Machine.run, Machine.compile)
        )  # fmt: skip
        shown = {"numpy": numpy * 1e6, "xla": xla * 1e6, "least": least * 1e6, "compile": cost}
        if numpy <= least:
            return self._settled(runner, CALLS.format(**shown))
        likely = xla < MARGIN * numpy
        pays = math.ceil(cost / (numpy - xla) if likely else DOUBT * cost / numpy)
        if calls < pays:
            self.again = pays
            self.reason = (LATER if likely else UNLIKELY).format(**shown, calls=pays)
            return runner
        return self._measured(runner, numpy, shown, tensors)

    def _measured(self, runner: Runner, numpy: float, shown: dict[str, float], tensors: list[Tensor]) -> Runner:
        """The faster one of both, timed."""
        start = time.perf_counter()
        other = self._compiled(self._program, tensors)
        for program in _programs(other):
            program.compile()
        shown["compile"] = time.perf_counter() - start
        xla = _seconds(other)
        if xla is None:
            return self._settled(runner, UNKNOWN)
        shown["xla"] = xla * 1e6
        faster = xla < MARGIN * numpy
        text = MEASURED.format(**shown, chosen="jax" if faster else "numpy")
        return self._settled(other if faster else runner, text)

    def _settled(self, runner: Runner, reason: str) -> Runner:
        self.again, self.reason = NEVER, reason
        return runner


def _programs(runner: Runner) -> list[Any]:
    return [runner.forward] if runner.backward is None else [runner.forward, runner.backward]


def _seconds(runner: Runner) -> float | None:
    """What a call, and its gradient, take; None if that cannot be told."""
    given = [isinstance(source, Argument) for source in runner.plan.program.sources]
    found = [seconds_of_program(p, given if p is runner.forward else ()) for p in _programs(runner)]
    return None if None in found else sum(s for s in found if s is not None)
