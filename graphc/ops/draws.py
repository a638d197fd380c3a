"""Random numbers that depend on values: of samplers that take as many random words as they need.

sampler: the name of one of `SAMPLERS`, which whoever has generators adds to, or such a function.

All other random numbers are inputs of a program, drawn before it runs. These are drawn while it runs, and what is drawn
after them from the same generator, too: its state goes through the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT64
from graphc.ops.samples import Ints, Sample
from graphc.ops.spec import Op, Rule, op

# name -> f(state, *inputs), which returns the numbers and the state after them
SAMPLERS: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {}


def _drawn(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> tuple[Aval, Aval]:
    return Aval(tuple(params["shape"]), params["dtype"]), avals[0]


def _draw(state: np.ndarray, *inputs: np.ndarray, sampler: Any, shape: Any, dtype: np.dtype) -> tuple[Any, Any]:
    values, after = (SAMPLERS[sampler] if isinstance(sampler, str) else sampler)(state, *inputs)
    return np.asarray(values, dtype).reshape(shape), np.asarray(after, state.dtype)


def _reference(
    state: np.ndarray, *inputs: np.ndarray, sampler: Any, shape: Any, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    return SAMPLERS[sampler](state, *inputs)


def _counted(state: np.ndarray, *inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A sampler for tests: numbers that follow from the state, which counts."""
    return state.sum() + sum(inputs, np.zeros(())), state + 1


SAMPLERS["counted"] = _counted

draw = op(
    "draw", "state *inputs", results="values after", params={"sampler": None, "shape": (), "dtype": FLOAT64},
    impl=lambda xp, *operands, **params: _draw(*operands, **params), numpy=_draw, rule=Rule(_drawn),
    ref=_reference,
    samples=(Sample(Ints((3,), 9), (2, 3), sampler="counted", shape=(2, 3), dtype=FLOAT64),),
)  # fmt: skip
