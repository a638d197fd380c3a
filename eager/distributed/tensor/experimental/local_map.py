"""A function of parts as a function of tensors on a mesh. As `torch.distributed.tensor.experimental.local_map`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eager.core.pytree import flatten, unflatten
from eager.core.tensor import Tensor
from eager.distributed.device_mesh import DeviceMesh
from eager.distributed.tensor.dtensor import DTensor
from eager.distributed.tensor.placements import Placement, Shard

__all__ = ["local_map"]

Placements = Sequence[Placement] | None
COUNT = "in_placements length {found} does not match the number of input args {expected}!"
NEEDS = "DTensor input {arg} expects {what} but received None!"
NEEDS_NONE = "Non-Tensor input {arg} expects None placements but received {spec}!"
OTHER = (
    "arg {arg} in local_map has a mismatched placements: arg placements is {found} but the input placements is {spec}! "
    "If redistribute_inputs is wanted, set redistribute_inputs=True to local_map."
)
OUTPUTS = (
    "local_map requires one PlacementType be provided for each output value, received {found} out_placements but "
    "{expected} is expected!"
)
ON_MESH = "torch.Tensor output expected but received {kind}: {out}"
NO_TENSOR = "Non-tensor output {out} expects None placements but received {spec}!"


def local_map(
    func: Callable[..., Any] | None = None, out_placements: Any = None, in_placements: Any = None,
    in_grad_placements: Any = None, device_mesh: DeviceMesh | None = None, *, redistribute_inputs: bool = False,
) -> Any:  # fmt: skip
    """`func` of the parts of its arguments that are on a mesh; what it returns are parts of tensors on the mesh.

    out_placements      of each value that `func` returns, how they are parts; None for what is no tensor
    in_placements       of each argument, how it has to lie; None for what is not on a mesh
    in_grad_placements  of each argument, how gradients of the parts make up that of the whole
    device_mesh         of the results; None: that of the first argument on one
    redistribute_inputs whether arguments that lie otherwise are redistributed

    In a process that has all devices, `func` is called for the parts of each. Raises AssertionError for placements that
    do not fit arguments or results, ValueError for arguments that lie otherwise.
    """
    if func is None:
        return functools.partial(
            local_map, out_placements=out_placements, in_placements=in_placements, device_mesh=device_mesh,
            in_grad_placements=in_grad_placements, redistribute_inputs=redistribute_inputs,
        )  # fmt: skip

    @functools.wraps(func)
    def on_mesh(*args: Any, **kwargs: Any) -> Any:
        given, structure = flatten(args)
        if in_placements is not None and len(in_placements) != len(given):
            raise AssertionError(COUNT.format(found=len(in_placements), expected=len(given)))
        wished = in_placements or (None,) * len(given)
        laid = [_laid(x, w, in_placements is not None, redistribute_inputs) for x, w in zip(given, wished, strict=True)]
        mesh = device_mesh or next((x.device_mesh for x in laid if isinstance(x, DTensor)), None)
        if mesh is None or not any(isinstance(x, DTensor) for x in laid):
            return func(*args, **kwargs)
        grads = in_grad_placements or (None,) * len(given)
        if in_grad_placements is not None:
            for x, spec in zip(laid, grads, strict=True):
                if isinstance(x, DTensor) and spec is None:
                    raise AssertionError(NEEDS.format(arg=x, what="in grad placements"))
        parts = [_parts(x, spec) if isinstance(x, DTensor) else None for x, spec in zip(laid, grads, strict=True)]
        given_to_each = (
            [x if p is None else p[k] for x, p in zip(laid, parts, strict=True)]
            for k in range(mesh.size() if mesh._numbers is None else 1)
        )
        flat = [flatten(func(*unflatten(own, structure), **kwargs)) for own in given_to_each]
        made, shape = [leaves for leaves, _ in flat], flat[0][1]
        specs = out_placements if isinstance(out_placements, tuple) else (out_placements,)
        if len(made[0]) != len(specs):
            raise AssertionError(OUTPUTS.format(found=len(specs), expected=len(made[0])))
        of_each = zip(zip(*made, strict=True), specs, strict=True)
        return unflatten([_joined(parts_of_one, mesh, spec) for parts_of_one, spec in of_each], shape)

    return on_mesh


def _laid(x: Any, spec: Placements, checks: bool, redistributes: bool) -> Any:
    """An argument as it has to lie."""
    if not isinstance(x, DTensor):
        if checks and spec is not None and not isinstance(x, Tensor):
            raise AssertionError(NEEDS_NONE.format(arg=x, spec=spec))
        return x
    if not checks or x.placements == tuple(spec or ()):
        return x
    if spec is None:
        raise AssertionError(NEEDS.format(arg=x, what="placements"))
    if not redistributes:
        raise ValueError(OTHER.format(arg=x, found=x.placements, spec=tuple(spec)))
    return x.redistribute(placements=tuple(spec))


def _parts(x: DTensor, grads: Placements) -> list[Tensor]:
    """The part of this process; of one that has all devices, that of each."""
    mesh, placements = x.device_mesh, x.placements
    if mesh._numbers is not None:
        return [x.to_local(grad_placements=None if grads is None else tuple(grads))]
    found, whole = [], x.full_tensor()
    for at in np.ndindex(mesh.shape):
        part = whole
        for placement, k, count in zip(placements, at, mesh.shape, strict=True):
            if isinstance(placement, Shard):
                size = -(-part.shape[placement.dim] // count)
                start = min(k * size, part.shape[placement.dim])
                part = part.narrow(placement.dim, start, min(size, part.shape[placement.dim] - start))
        found.append(part)
    return found


def _joined(parts: Sequence[Any], mesh: DeviceMesh, spec: Placements) -> Any:
    if not isinstance(parts[0], Tensor):
        if spec is not None:
            raise AssertionError(NO_TENSOR.format(out=parts[0], spec=spec))
        return parts[0]
    if isinstance(parts[0], DTensor):
        raise AssertionError(ON_MESH.format(kind=type(parts[0]), out=parts[0]))
    return DTensor.from_local(parts[0] if mesh._numbers is not None else [*parts], mesh, spec, run_check=False)
