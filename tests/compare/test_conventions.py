"""Where a derivative is infinite or a function is not defined, modes differ by convention: none is called wrong."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import compare
import eager as torch
from eager.engine.language import E
from graphc.ops.spec import OPS, Op

POINTS = -30.0, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, 30.0
PAIRS = list(itertools.product((-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0), repeat=2))
SHARE = "digamma", "logit", "trigamma", "xlogy"  # those that once were called bugs, and a pole like theirs


def _smooth(op: Op) -> bool:
    return op.pointwise and bool(op.vjp) and not op.params and len(op.args) in (1, 2)


OPERATORS = [
    pytest.param(op, id=op.name, marks=() if op.name in SHARE else pytest.mark.deep)
    for op in OPS.values()
    if _smooth(op)
]


@pytest.mark.parametrize("op", OPERATORS)
def test_poles_and_edges_are_no_bugs_of_any_mode(op: Op):
    table = np.array(PAIRS if len(op.args) == 2 else POINTS).reshape(-1, len(op.args))
    operands = [torch.tensor(column, requires_grad=True) for column in table.T]
    report = compare.check(
        lambda *given: getattr(E, op.name)(*given), *operands, modes=["eager", "graph", "compiled", "jax.grad"]
    )
    assert report.ok, report
