"""A shape rule that contradicts its kernel is found, and named, also where gradients are judged."""

from __future__ import annotations

from compare.selftest.faults import FAULTS
from compare.selftest.hunting import hunt


def test_the_gradients_of_an_op_with_a_wrong_shape_rule_are_judged() -> None:
    faults = [f for f in FAULTS if "gather" in f.name and f.layer == "shape rules"]
    assert len(faults) == 2 and all(hunt(fault, 1.0).localized for fault in faults)
