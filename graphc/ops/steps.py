"""Views as steps from a whole: how they are read, how a write to one is a write to the whole, and how they lie.

For values without memory of their own that can be written: those of a graph under construction, and jax.Arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from graphc.ops.aval import Aval
from graphc.ops.dims import has_dim
from graphc.ops.interpret import with_defaults
from graphc.ops.lens import Lens
from graphc.ops.spec import OPS, Op, Trait
from graphc.ops.strides import Place, Strides, normal, row_major, strides_of

Emit = Callable[[Op, Sequence[Any], Any], Any]  # runs an op on promoted operands, with complete parameters

REPEATED = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
    "Please clone() the tensor before performing the operation."
)


class Step(NamedTuple):
    """One movement on the way from a tensor to a view of it.

    operands  what else it needs: the indices of x[i]
    """

    op: Op
    params: Any
    operands: tuple[Any, ...] = ()

    @property
    def lens(self) -> Lens:
        assert self.op.lens is not None, f"{self.op} makes no view"
        return self.op.lens


def looked(emit: Emit, whole: Any, steps: Sequence[Step]) -> Iterator[Any]:
    """The whole, and what each step makes of it."""
    yield whole
    for op, params, operands in steps:
        whole = emit(op, (whole, *operands), params)
        yield whole


def whole_after(language: Any, emit: Emit, whole: Any, steps: Sequence[Step], value: Any) -> Any:
    """The whole, once `value` has been written where `steps`, through which no elements repeat, lead to."""
    wholes = list(looked(emit, whole, steps[:-1]) if steps else ())
    for step, of in zip(reversed(steps), reversed(wholes), strict=True):
        put = step.lens.put
        assert put is not None  # elements repeat otherwise
        value = put(language, of, value, *step.operands, **step.params)
    return value


def may_repeat(steps: Sequence[Step]) -> bool:
    """Whether elements may share a place in the whole."""
    return any(step.lens.repeats(**step.params) for step in steps)


def numbers_seen(shape: Any, steps: Sequence[Step]) -> np.ndarray:
    """Which elements of a whole of this shape a view shows, by number. RuntimeError where that is not known."""
    if has_dim(shape):
        raise RuntimeError(REPEATED)
    seen = np.arange(math.prod(shape)).reshape(shape)
    for op, params, operands in steps:
        if operands or not op.traits & Trait.MOVES:  # of x[i] it is not known, and parts of numbers have none
            raise RuntimeError(REPEATED)
        seen = op.kernel(seen, **with_defaults(op, params))
    return seen


def place_of_view(op: Op, params: Any, shape: tuple[int, ...], strides: Strides, dtype: np.dtype) -> Place | None:
    """How the view that `op` makes of such a tensor lies, in elements of its own dtype, from the tensor's first one on.

    None if `op` copies. It looks at no element.
    """
    params = with_defaults(op, params)
    if op.lens is not None and op.lens.lies(Aval(shape, dtype), strides, **params) is None:
        return None
    if 0 in shape:
        return None, 0
    memory = np.zeros(1, dtype)
    x = as_strided(memory, shape, [s * dtype.itemsize for s in strides or row_major(shape)])
    view = op.kernel(x, **params)
    apart = view.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    return strides_of(view), apart // view.itemsize


def strides_of_pointwise(
    shapes: Sequence[tuple[int, ...]], strides: Sequence[Strides], shape: tuple[int, ...]
) -> Strides:
    """The strides of what a pointwise kernel makes of arrays that lie so: it keeps the order of their dims."""
    if all(s is None for s in strides) or 0 in shape:
        return None
    memory = np.zeros(1, np.int8)
    few = [tuple(min(n, 2) for n in s) for s in shapes]  # enough to see an order
    given = zip(few, shapes, strides, strict=True)
    arrays: list[Any] = [as_strided(memory, small, steps or row_major(s)) for small, s, steps in given]
    made: np.ndarray = np.nditer([*arrays, None], flags=["reduce_ok"]).operands[-1]  # which reads no element
    order = sorted(range(made.ndim), key=lambda axis: -made.strides[axis])
    found = dict(zip(order, row_major(tuple(shape[axis] for axis in order)), strict=True))
    return normal(shape, tuple(found[axis] for axis in range(len(shape))))


def steps_of(op: Op, params: Any, aval: Aval) -> tuple[Step, ...]:
    """The steps that `op`, which makes a view of an operand with this `aval`, consists of."""
    if op.lens is not None:
        return (Step(op, params),)
    recorder = _Recorder()
    assert op.definition is not None, f"{op} makes no view"
    op.definition(recorder, aval, **params)
    return tuple(recorder.steps)


class _Recorder:
    """An op language that notes the steps of a definition, on avals."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def __getattr__(self, name: str) -> Callable[..., Aval]:
        op = OPS[name]

        def note(aval: Aval, **params: Any) -> Aval:
            params = with_defaults(op, params)
            if op.definition is not None:
                return op.definition(self, aval, **params)
            self.steps.append(Step(op, params))
            return op.rule.infer(op, [aval], params)

        return note
