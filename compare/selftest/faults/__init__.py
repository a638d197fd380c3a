"""All faults that are planted, in tables by what is at fault."""

from compare.selftest.fault import Fault
from compare.selftest.faults import (
    algebra,
    aliases,
    batching,
    combinations,
    control_flow,
    facts,
    functionalization,
    generated,
    gradients,
    guards,
    kernels,
    layouts,
    lowerings,
    partitions,
    passes,
    places,
    randomness,
    rules,
    shapes,
    shardings,
    shared,
    systems,
)

_TABLES = (
    gradients, kernels, lowerings, shapes, passes, rules, functionalization, randomness, guards,
    control_flow, partitions, combinations, batching, generated, aliases, layouts, shared, places, algebra, systems,
    facts, shardings,
)  # fmt: skip
FAULTS: tuple[Fault, ...] = tuple(fault for table in _TABLES for fault in table.FAULTS)

__all__ = ["FAULTS"]
