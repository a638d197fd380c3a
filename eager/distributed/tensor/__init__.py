"""Placements of tensors on meshes. As `torch.distributed.tensor`, where one process runs the program of all devices.

A tensor here keeps all of its values. What `distribute_tensor` says of it is read by `graphc.compile(..., mesh=)`,
whose programs hold it in parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eager.core.missing import explain
from eager.core.tensor import Tensor
from eager.distributed.device_mesh import DeviceMesh
from eager.distributed.tensor import marks
from eager.distributed.tensor.placements import Partial, Placement, Replicate, Shard, checked
from eager.nn import Module
from graphc.lazy import lazy

__all__ = ["Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor"]
__getattr__, __dir__ = lazy(__name__, {}, ("parallel",))
explain(__name__)


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh, placements: Sequence[Placement] | None = None, *,
    src_data_rank: int | None = 0,
) -> Tensor:  # fmt: skip
    """Let compiled programs hold `tensor` as `placements` say, one for each dim of the mesh. Returns it.

    Raises ValueError for another number of placements, for `Partial`, and for a dim that the tensor has not.
    """
    given = checked(placements, device_mesh.ndim)
    for placement in given:
        if isinstance(placement, Partial):
            raise ValueError("distribute_tensor: a tensor that has its values cannot be placed as terms of a sum")
        if isinstance(placement, Shard) and not -tensor.ndim <= placement.dim < tensor.ndim:
            raise ValueError(f"distribute_tensor: {placement!r} of a tensor with {tensor.ndim} dims")
    marks.add(tensor, marks.Mark(device_mesh, given))
    return tensor


def distribute_module(
    module: Module, device_mesh: DeviceMesh, partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Any = None, output_fn: Any = None,
) -> Module:  # fmt: skip
    """Let `partition_fn(name, submodule, mesh)` place parameters; those that it leaves are replicated.

    input_fn(module, inputs, mesh) and output_fn(module, outputs, mesh) become hooks of the module's forward.
    """
    for name, submodule in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, submodule, device_mesh)
        for tensor in (*submodule.parameters(recurse=False), *submodule.buffers(recurse=False)):
            if not marks.of(tensor):
                distribute_tensor(tensor, device_mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda m, args: input_fn(m, args, device_mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda m, args, out: output_fn(m, out, device_mesh))
    return module
