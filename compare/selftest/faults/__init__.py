"""All faults that are planted, in tables by what is at fault."""

from importlib import import_module

from compare.selftest.fault import Fault
from graphc.lowering.devices import count

DEVICES = 4  # that faults of meshes need
_TABLES = (
    "gradients kernels lowerings shapes passes rules functionalization randomness guards control_flow partitions "
    "combinations batching generated aliases layouts shared special_points algebra systems facts shardings promotions "
    "corners machinery keeping lengths"
).split()
FAULTS: tuple[Fault, ...] = tuple(fault for table in _TABLES for fault in import_module(f"{__name__}.{table}").FAULTS)


def every_fault() -> tuple[Fault, ...]:
    """Those of `FAULTS`, and those of meshes, where JAX has the devices."""
    if count() < DEVICES:
        return FAULTS
    from compare.selftest.faults import meshes  # which loads JAX

    return (*FAULTS, *meshes.FAULTS)


__all__ = ["DEVICES", "FAULTS", "every_fault"]
