"""The trace of a call: with symbolic sizes and traced numbers where that succeeds, else without."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from graphc import errors
from graphc.capture.program import Program
from graphc.capture.sources import Drawn
from graphc.capture.state.environment import Environment
from graphc.capture.state.lifted_numbers import lifted_of, take_by_value, with_lifted
from graphc.capture.state.lifting import LiftedPlaces
from graphc.capture.symbolic_program import SymbolicProgram
from graphc.capture.trace import capture, forget
from graphc.compiling.dynamic_shapes import DynamicShapes
from graphc.compiling.signature import Call
from graphc.execution.abandoned import abandon


class Traced(NamedTuple):
    """A program for one call, in the Python state that it was traced in; and what it is of, if sizes are symbolic."""

    environment: Environment
    program: Program
    symbolic: SymbolicProgram | None


def traced(
    fn: Callable[..., Any], call: Call, places: LiftedPlaces, shapes: DynamicShapes, path: tuple[bytes, ...],
    drawn: Drawn, keepers_stay: bool = False,
) -> Traced:  # fmt: skip
    """Trace `fn(*call.args, **call.kwargs)`, as the first decisions have the values `path`.

    What fails with symbolic sizes or traced numbers is traced without: C code may not take them. So is what asks
    for the `type` of numbers.

    drawn  gets what the trace has drawn
    """
    tensors, raised = call.tensors, None
    batches = shapes.batches(call.signature, tensors)
    first = Environment(fn, *call.given, places)
    numbered = bool(first.lifting.numbers or lifted_of(tensors))
    if numbered and first.asks_types:
        _take_by_value(first, call, places)
        first, numbered = Environment(fn, *call.given, places), False
    for sizes, numbers in [(s, n) for s in (True, False) for n in (True, False)]:
        if (sizes and batches is None) or (numbers and not numbered):
            continue
        chosen = places if numbers else places.without_numbers()
        environment = first if raised is None else Environment(fn, *call.given, chosen)
        last = not sizes and not numbers
        undo = functools.partial(forget, environment)
        try:
            program = capture(
                fn, *with_lifted(tensors, *call.given, not numbers), environment=environment, foretold=path,
                batches=batches if sizes else None, drawn=drawn, keepers_stay=keepers_stay,
                failed=functools.partial(abandon, call.given, environment) if last else undo,
            )  # fmt: skip
            symbolic = None
            if sizes and batches is not None:
                symbolic = SymbolicProgram(program, *batches, tensors)
                program = symbolic.at(batches[0].hints)._replace(drawn=program.drawn)
        except errors.KeeperStaysError:
            return traced(fn, call, places, shapes, path, drawn, keepers_stay=True)
        except Exception as error:
            if last or isinstance(error, errors.UnrolledError):
                raise
            raised, batches = error, shapes.batches(call.signature, tensors)
            continue
        if places.learn(environment.counters):  # else the next call is traced and compiled anew
            drawn.interrupted()
            return traced(fn, call, places, shapes, path, drawn, keepers_stay)
        if numbers and environment.asks_types:  # as has been found meanwhile
            drawn.put_back()
            _take_by_value(environment, call, places)
            return traced(fn, call, places, shapes, path, drawn, keepers_stay)
        if raised is not None and numbered and not numbers:
            _take_by_value(first, call, places)
        if raised is not None and batches is not None and not sizes:
            shapes.refuse(call.signature, raised)
        return Traced(environment, program, symbolic)
    raise AssertionError("the last trace returns or raises")


def _take_by_value(environment: Environment, call: Call, places: LiftedPlaces) -> None:
    """Let a program be for the numbers of the call, in places and among the arguments, from now on."""
    places.fix(environment.lifting)
    take_by_value(call.tensors)
