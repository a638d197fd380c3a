"""Modules whose parameters lie on a mesh."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from eager.core.tensor import Tensor
from eager.distributed.device_mesh import DeviceMesh
from eager.distributed.tensor import marks
from eager.distributed.tensor.dtensor import available, is_distributed, place
from eager.distributed.tensor.placements import Placement, Replicate, checked
from eager.nn import Module

__all__ = ["distribute_module"]

TWICE = "distribute_module should only be called once on a module, but it has already been called on this module!"
TWO_ARGUMENTS = (
    "Deprecating {name} that takes two arguments ({what}, device_mesh), please use {name} that takes in (module, "
    "{what}, device_mesh) instead!"
)


def distribute_parameter(
    tensor: Tensor, mesh: DeviceMesh, placements: Sequence[Placement], src_data_rank: int | None = 0, **how: Any
) -> None:
    """Let a parameter or buffer lie so: on the devices, if this process has them, and in programs for the mesh.

    src_data_rank: see `distribute_tensor`. how: what else `Mark` says.
    """
    given = checked(placements, mesh.ndim, tensor.ndim)
    marks.add(tensor, marks.Mark(mesh, given, **how))
    if available(mesh):
        place(tensor, mesh, given, src_data_rank)


def distribute_module(
    module: Module, device_mesh: DeviceMesh, partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Any = None, output_fn: Any = None,
) -> Module:  # fmt: skip
    """Let `partition_fn(name, submodule, mesh)` place parameters; those that it leaves are replicated.

    input_fn(module, inputs, mesh) and output_fn(module, outputs, mesh) become hooks of the module's forward. Where this
    process does not have the devices of the mesh, parameters are marked only, for programs and predictions. Raises
    RuntimeError if called twice on a module, ValueError for hooks with other parameters.
    """
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError(TWICE)
    before: Any = _hook(input_fn, "input_fn", "inputs")
    after: Any = _hook(output_fn, "output_fn", "outputs")
    for name, submodule in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, submodule, device_mesh)
        for tensor in (*submodule.parameters(recurse=False), *submodule.buffers(recurse=False)):
            if not marks.of(tensor) and not is_distributed(tensor):
                distribute_parameter(tensor, device_mesh, [Replicate()] * device_mesh.ndim)
    if before is not None:
        module.register_forward_pre_hook(lambda m, args: before(m, args, device_mesh))
    if after is not None:
        module.register_forward_hook(lambda m, args, out: after(m, out, device_mesh))
    module._distribute_module_applied = True
    return module


def _hook(function: Any, name: str, what: str) -> Any:
    """What the user gave, as a function of (module, value, mesh)."""
    if function is None:
        return None
    count = len(inspect.signature(function).parameters)
    if count == 2:
        warnings.warn(TWO_ARGUMENTS.format(name=name, what=what), FutureWarning, stacklevel=3)
        return lambda module, value, mesh: function(value, mesh)
    if count != 3:
        raise ValueError(f"{name} should take in 3 arguments, but got {count} arguments!")
    return function
