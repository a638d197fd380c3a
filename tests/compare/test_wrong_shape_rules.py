"""A shape rule that contradicts its kernel is found, and named, also where gradients are judged."""

from __future__ import annotations

import pytest

from compare.selftest.faults import FAULTS
from compare.selftest.hunting import hunt


@pytest.mark.parametrize("op", ["gather", "tril", "conv2d", "cat"])
def test_the_gradients_of_an_op_with_a_wrong_shape_rule_are_judged(op: str) -> None:
    """References of other ops are not asked about what a false declaration has made of their operands."""
    faults = [f for f in FAULTS if f.layer == "shape rules" and f.culprit.op == op]
    assert faults and all(hunt(fault, 1.0).localized for fault in faults)
