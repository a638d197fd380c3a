"""Random numbers whose draws depend on traced values: the program draws them itself, from a state in the graph.

The first such draw takes the generator's state as an input. From there on all that is drawn from the generator is drawn
by the program, in order, and at the end its state is written to where the generator looks for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eager.core.interpreter import IMMEDIATE, interpreting
from eager.core.tensor import Tensor
from eager.rng.generator import STATE, Generator
from eager.rng.rejection import Sampler
from graphc import errors
from graphc.capture.location import user_line
from graphc.capture.sources import Draw
from graphc.ops import OPS
from graphc.ops.aval import Aval
from graphc.ops.dtypes import UINT8

if TYPE_CHECKING:
    from graphc.capture.tracer import Tracer

_DRAW = OPS["draw"]


def drawn(tracer: Tracer, sampler: Sampler, inputs: Sequence[Tensor], generator: Generator) -> Tensor:
    """See `eager.core.interpreter.Interpreter.drawn`."""
    values = tuple(inputs[0]._d.shape), inputs[0]._dtype()
    return _emitted(tracer, sampler.name, inputs, *values, generator)


def again(
    tracer: Tracer, draw: Callable[[tuple[int, ...]], np.ndarray], shape: tuple[int, ...], dtype: np.dtype,
    generator: Generator,
) -> Tensor:  # fmt: skip
    """A draw that does not depend on values itself, but comes after one that does."""
    return _emitted(tracer, functools.partial(_redrawn, draw, shape, generator), (), shape, dtype, generator)


def refuse(tracer: Tracer, generator: Generator, what: str) -> None:
    """CaptureError if the program itself has drawn from `generator`: the draws of a body would come too early."""
    if id(generator) in tracer.state.states:
        raise errors.CaptureError(errors.DRAW_IN_BODY.format(what=what, used=user_line()))


def _emitted(
    tracer: Tracer, sampler: Any, inputs: Sequence[Tensor], shape: tuple[int, ...], dtype: np.dtype,
    generator: Generator,
) -> Tensor:  # fmt: skip
    state = tracer.state
    if state.outer is not None:
        raise errors.CaptureError(errors.DRAW_IN_BODY.format(what="control flow", used=user_line()))
    if id(generator) in state.states:
        before = state.states[id(generator)][1]
    else:
        source = Draw(generator._state, generator)
        before = tracer.wrap(
            tracer.input(f"random_{len(state.sources)}", Aval((STATE.itemsize,), UINT8), source), False
        )
    values, after = tracer.apply(_DRAW, (before, *inputs), dict(sampler=sampler, shape=tuple(shape), dtype=dtype))
    state.states[id(generator)] = generator, after
    with interpreting(IMMEDIATE):  # it is not made by the program
        left = generator.left()
    tracer.assign(left, after, "copy")
    return values


def _redrawn(
    draw: Callable[[tuple[int, ...]], np.ndarray], shape: tuple[int, ...], generator: Generator, state: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`draw` takes its numbers from `generator`, which stands elsewhere."""
    mark = generator.mark()
    try:
        generator._continue(state)
        return draw(shape), generator._state()
    finally:
        generator.rewind(mark)
