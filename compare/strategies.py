"""Strategies of Hypothesis, for property tests of functions, ops and compilers: tensors, ops, and whole programs.

>>> from hypothesis import given
>>> import eager as torch
>>> from compare import strategies
>>> @given(strategies.tensors())
... def test_twice_is_a_sum(x):
...     assert torch.equal(x + x, 2 * x) or x.isnan().any()
>>> test_twice_is_a_sum()
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

import eager
from compare.declared.operations import OpCall, call_of, samples_of
from compare.fuzzing import Program, generate
from compare.fuzzing.design import vocabulary
from compare.fuzzing.generator import SIZE, runs
from compare.minimizing.statements import cut, values_of, with_aliases
from eager.core.tensor import Tensor
from eager.rng.sampling import default_generator
from graphc.errors import require
from graphc.ops import Op
from graphc.ops.dtypes import is_inexact

require("hypothesis", "compare.strategies", "compare")

import hypothesis  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.extra import numpy as arrays  # noqa: E402

SEEDS = st.integers(0, 2**32 - 1)
KEPT = st.integers(0, 15)
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


@st.composite
def tensors(
    draw: st.DrawFn,
    shapes: st.SearchStrategy[tuple[int, ...]] = SHAPES,
    *,
    dtypes: Sequence[eager.dtype] = (eager.float32,),
    elements: st.SearchStrategy[Any] | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Tensors of shapes from `shapes` (0 to 3 dimensions of 0 to 4 elements) and one of `dtypes`.

    elements       numbers; None: all that the dtype has, so nan and infinities are among them
    requires_grad  of tensors of floating-point and complex numbers
    """
    dtype = draw(st.sampled_from(dtypes)).numpy
    array = draw(arrays.arrays(dtype, draw(shapes), elements=elements))
    return Tensor._wrap(array).requires_grad_(requires_grad and is_inexact(dtype))


def ops(where: Callable[[Op], bool] = lambda op: True) -> st.SearchStrategy[Op]:
    """Ops of the registry for which `where` is true: those that are functions of arrays alone."""
    return st.sampled_from(vocabulary()).filter(where)


@st.composite
def op_calls(draw: st.DrawFn, among: st.SearchStrategy[Op] | None = None, dtype: eager.dtype = eager.float32) -> OpCall:
    """Calls of ops, with operands and parameters that the op declares for tests; floats are of `dtype`.

    An op and its sample shrink to the first of their lists; numbers do not shrink.
    """
    op = draw(ops() if among is None else among)
    sample = draw(st.sampled_from(list(samples_of(op))))
    return call_of(op, sample, np.random.default_rng(draw(SEEDS)), dtype.numpy)


@st.composite
def programs(draw: st.DrawFn, size: int = SIZE, without: Collection[str] = ()) -> Program:
    """Random programs, as `compare.fuzz` makes them: `program.function(*program.arguments())` returns a tuple.

    size     ops of a program, besides what fits values together
    without  names of ops to leave out

    A failing program shrinks statement by statement: inputs take the place of what statements have made. Its script,
    which shows it in a fresh process, is printed.
    """
    with default_generator.forked():
        program = generate(draw(SEEDS), size, without)
        # most statements are kept, and 0 is what Hypothesis shrinks to: fewer, one after the other
        kept = [draw(KEPT) > 0 for _ in program.statements]
        if not all(kept):
            eager.manual_seed(0)  # the values that are to be inputs must be the same each time
            aliased = with_aliases(program)
            away = {k for k, keep in enumerate(kept) if not keep} - {len(kept) - 1}
            left = cut(aliased, away, values_of(aliased))
            hypothesis.assume(left is not None and runs(left))
            program = left or program
    hypothesis.note(program.script())
    return program
