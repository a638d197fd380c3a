"""All faults that are planted, in tables by what is at fault."""

from compare.selftest.fault import Fault
from compare.selftest.faults import (
    functionalization,
    gradients,
    guards,
    kernels,
    lowerings,
    passes,
    randomness,
    rules,
    shapes,
)

_TABLES = (gradients, kernels, lowerings, shapes, passes, rules, functionalization, randomness, guards)
FAULTS: tuple[Fault, ...] = tuple(fault for table in _TABLES for fault in table.FAULTS)

__all__ = ["FAULTS"]
