"""DTensor: a tensor that lies in parts on the devices of a mesh, which are all this process's, or one of each process.

Its data is one array of JAX over all devices, so that `shape` and values are those of the whole tensor, each op is one
program for all devices, and XLA decides how its result lies and what is exchanged for it. A process of PyTorch has one
part of each tensor; one that is alone has all of them here. What that means for PyTorch's words: docs/dtensor.md.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, final

from eager.core.devices import CPU, check_device, device, device_of_mesh
from eager.core.interpreter import current_interpreter
from eager.core.meta import Meta, is_meta
from eager.core.overriding import disabled
from eager.core.placed import data_of, is_placed, spread
from eager.core.runtime import Dims, devices, runtime
from eager.core.tensor import Tensor
from eager.distributed.device_mesh import DeviceMesh
from eager.distributed.tensor.local import joined, part_of, reduced
from eager.distributed.tensor.placements import Partial, Placement, Replicate, Shard, checked, dims_of
from eager.engine.crossing import transferred
from eager.engine.language import E
from eager.processes.world import world
from graphc.scoped import variable

__all__ = ["DTensor", "distribute_tensor"]

NOT_LEAF = "`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!"
OTHER_MESH = "Cannot distribute a DTensor with device mesh {} to a different device mesh {}."
OTHER_PLACEMENTS = (
    "Cannot distribute a DTensor with placements {} to a different placements {}. do you want to call `redistribute` "
    "instead?"
)
TO_PARTIAL = "Can not redistribute from {} to {}, redistributing to Partial is for internal use only!"
LOCAL_ONLY = "the local_tensor argument only accepts torch.Tensor but got {} value."
TOO_FEW = (
    "{} needs {} devices of this process, JAX has {}: for a simulation on the CPU set "
    "XLA_FLAGS=--xla_force_host_platform_device_count={} before JAX is imported"
)
UNKNOWN = (
    "{what} of {aval}, made at {made}, at {used}: how a traced value lies is known when its program has been compiled. "
    "Remedy: full_tensor() here, or placements and to_local() of what the compiled function returns"
)
OUTSIDE = "rank {} is not in {}: only the processes of a mesh put tensors on it"
ORDER = "tensors lie on meshes of ranks 0, 1, ... in this order, got {}"


class _Kind(type(Tensor)):
    def __instancecheck__(cls, tensor: Any) -> bool:
        return is_distributed(tensor)


class DTensor(Tensor, metaclass=_Kind):
    """What a tensor on a mesh is an instance of. Made by `distribute_tensor`, `from_local`, and by operations.

    Tensors have one class here, so this is a name for those that are on a mesh, and for what only they can do.
    """

    __slots__ = ()
    __module__ = "eager.distributed.tensor"  # which messages name
    __torch_function__: Any = staticmethod(disabled)  # type: ignore[assignment]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("DTensors are made by distribute_tensor and DTensor.from_local")

    @staticmethod
    def from_local(
        local_tensor: Tensor | Sequence[Tensor], device_mesh: DeviceMesh,
        placements: Sequence[Placement] | None = None, *, run_check: bool = False,
        shape: Sequence[int] | None = None, stride: Sequence[int] | None = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:  # fmt: skip
        """The tensor whose parts are `local_tensor`: of each device the same one, or, of a sequence, one for each
        device in the order of the mesh. Parts are concatenated where they are shards; terms (Partial) are reduced at
        once, and what is replicated is that of the first device. Gradients flow back to the parts. On a mesh of several
        processes each has given its own part.

        RuntimeError for what is no plain tensor, ValueError for another number of parts, and for parts that do not
        make up `shape`.
        """
        if device_mesh._numbers is not None:
            return _from_own(local_tensor, device_mesh, placements, shape)
        parts = [local_tensor] * device_mesh.size() if isinstance(local_tensor, Tensor) else [*local_tensor]
        for part in parts:
            if not isinstance(part, Tensor) or is_distributed(part):
                raise RuntimeError(LOCAL_ONLY.format(DTensor if is_distributed(part) else type(part)))
        if len(parts) != device_mesh.size():
            raise ValueError(f"from_local: got {len(parts)} parts for {device_mesh.size()} devices")
        given = checked(placements, device_mesh.ndim, parts[0].ndim)
        for placement, count in zip(reversed(given), reversed(device_mesh.shape), strict=True):
            parts = [_whole(placement, parts[k : k + count]) for k in range(0, len(parts), count)]
        (whole,) = parts
        if shape is not None and tuple(shape) != tuple(whole.shape):
            raise ValueError(f"from_local: the parts make up shape {tuple(whole.shape)}, not {tuple(shape)}")
        return distributed(whole, device_mesh, _reduced(given))

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh that it lies on."""
        return self.device.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How it lies on each dim of its mesh. CaptureError, a RuntimeError, in a trace, where that is not known."""
        dims = self._d.dims if is_placed(self) or is_meta(self) else current_interpreter().lies(self)
        if dims is None:
            raise self._d.error(UNKNOWN, "placements, or to_local()")
        return self.device.mesh._placements(dims)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The part of the first device of this process, as a plain tensor. Gradients flow back to it, of several
        processes as `grad_placements` say. In a trace: see `placements`."""
        part: Tensor = self
        if is_meta(self):
            return Tensor._wrap(self._d.local())
        if self.device_mesh._numbers is not None:
            return part_of(self, grad_placements)
        for placement, count in zip(self.placements, self.device_mesh.shape, strict=True):
            if isinstance(placement, Shard):
                part = part.narrow(
                    placement.dim, 0, min(-(-part.shape[placement.dim] // count), part.shape[placement.dim])
                )
        return transferred(part, _plain_device(self.device_mesh))

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole, as a plain tensor. Gradients flow back, of several processes as `grad_placements` say."""
        if is_meta(self):
            return Tensor._wrap(Meta(self._d.shape, self._d.numpy_dtype))
        if self.device_mesh._numbers is not None:
            return part_of(_laid(self, self.device_mesh, (Replicate(),) * self.device_mesh.ndim), grad_placements)
        return transferred(self, _plain_device(self.device_mesh))

    def redistribute(
        self, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
        async_op: bool = False, forward_dtype: Any = None, backward_dtype: Any = None,
    ) -> DTensor:  # fmt: skip
        """The same values, lying as `placements` say. Of a part of its mesh as `device_mesh`, they are of its dims.

        Gradients lie alike on the way back, and in `grad` as the leaf does. Raises RuntimeError for Partial and without
        placements, NotImplementedError for a mesh that is not of the same devices.
        """
        mesh = device_mesh or self.device_mesh
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        given = checked(placements, mesh.ndim, self.ndim)
        own, names = self.device_mesh, self.device_mesh.mesh_dim_names or ()
        for k, wanted in enumerate(given):
            if isinstance(wanted, Partial):
                at = k if mesh.ndim == own.ndim else names.index((mesh.mesh_dim_names or names)[k])
                raise RuntimeError(TO_PARTIAL.format(self.placements[at], wanted))
        if mesh._base != self.device_mesh._base:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        value = self if forward_dtype is None else self.to(forward_dtype)
        return _laid(value, mesh, given)


def is_distributed(tensor: Any) -> bool:
    """Whether a value is a tensor on a mesh, or in a trace of a program that runs on one."""
    return isinstance(tensor, Tensor) and tensor._d is not None and tensor.device.mesh is not None


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh, placements: Sequence[Placement] | None = None, *,
    src_data_rank: int | None = 0,
) -> DTensor:  # fmt: skip
    """A leaf with the values of `tensor` that lies on the mesh as `placements` say, one for each of its dims.

    A dim that does not divide is whole on each device; `placements` and `to_local` are as in PyTorch. `Partial` gets
    its terms reduced at once, so it is `Replicate`. Raises ValueError for another number of placements and for a
    DTensor that lies otherwise, IndexError for a dim that the tensor has not, RuntimeError for a non-leaf, and without
    the devices.

    src_data_rank: of several processes, the one of the mesh whose values count; None: each takes its part of its own.
    """
    given = _reduced(checked(placements, device_mesh.ndim, tensor.ndim))
    if is_placed(tensor) and tensor.device.mesh is not None:
        if tensor.device.mesh != device_mesh:
            raise ValueError(OTHER_MESH.format(tensor.device.mesh, device_mesh))
        known: Any = tensor
        if known.placements != given:
            raise ValueError(OTHER_PLACEMENTS.format(known.placements, given))
        return known
    if not tensor.is_leaf:
        raise RuntimeError(NOT_LEAF)
    found = distributed(sent_by(src_data_rank, tensor.detach(), device_mesh), device_mesh, given)
    found.requires_grad_(tensor.requires_grad)
    return found


def place(
    tensor: Tensor, mesh: DeviceMesh, placements: Sequence[Placement], src_data_rank: int | None = 0
) -> None:  # fmt: skip
    """Let a parameter or buffer, and its gradient, lie on the mesh: the object stays, so optimizers and ties do.

    src_data_rank: see `distribute_tensor`.
    """
    given = checked(placements, mesh.ndim, tensor.ndim)
    for t in (tensor, tensor.grad):
        if t is not None:
            before: DeviceMesh | None = t.device.mesh
            both = mesh if before is None else mesh._with(before) if mesh._numbers else before._joined(mesh, "place")
            kept = ((),) * t.ndim if before is None else t._d.dims
            dims = _changed(kept, mesh, given, both)
            if is_meta(t):
                t._d = Meta(t._d.shape, t._d.numpy_dtype, both, dims)
                continue
            moved = before is not None and before._base != both._base
            data = part_of(_whole_of(t)).detach()._d if moved else data_of(sent_by(src_data_rank, t, mesh))
            t._d = spread(data, _checked_place(both), dims)


def _whole_of(t: Any) -> Any:
    return _laid(t.detach(), t.device.mesh, (Replicate(),) * t.device.mesh.ndim)


one_device: ContextVar[bool] = ContextVar("one_device", default=False)


def on_one_device() -> AbstractContextManager[None]:
    """A context in which nothing is put on a mesh: what a program for many devices is compared with.

    `redistribute`, `full_tensor` and `to_local` of a plain tensor are itself there.
    """
    return variable(one_device, True)


def available(mesh: DeviceMesh) -> bool:
    """Whether this process has the devices of a mesh, and is to use them."""
    if one_device.get():
        return False
    return mesh._numbers is not None or _count(mesh) >= mesh._get_root_mesh().size()


def _count(mesh: DeviceMesh) -> int:
    """How many devices of the kind of a mesh this process has."""
    return len(runtime().devices("cpu") if mesh.device_type == "cpu" else devices(mesh.device_type))


def distributed(whole: Any, mesh: DeviceMesh, placements: tuple[Placement, ...]) -> DTensor:
    """A plain tensor on the mesh, with its history; of a DTensor the same values, laid so on the axes of `mesh`."""
    if one_device.get():
        return whole
    traced = not current_interpreter().immediate
    if traced and not is_distributed(whole) and current_interpreter().separates(mesh):
        whole = joined(whole, mesh, (Replicate(),) * mesh.ndim)
    if is_distributed(whole) or traced:
        return _laid(whole, mesh, placements)
    where = _checked_place(mesh)
    return _laid(whole if is_meta(whole) else transferred(whole, where), mesh, placements)


def _laid(value: Tensor, mesh: DeviceMesh, placements: tuple[Placement, ...]) -> Any:
    """A tensor on the mesh, or on a part of it, lying so on the axes of `mesh`, and as before on others."""
    if is_meta(value):
        before = value._d.dims or ((),) * value.ndim
        return Tensor._wrap(Meta(value._d.shape, value._d.numpy_dtype, mesh, _changed(before, mesh, placements)))
    if not current_interpreter().immediate:  # what it is on other axes is left to the compiler
        spec = _changed(((),) * value.ndim, mesh, placements)
        free = mesh.ndim < len(mesh._axes)
        return E.shard(value, spec=tuple(axes or (None if free and d == 0 else ()) for d, axes in enumerate(spec)))
    dims = _changed(value._d.dims, mesh, placements)
    sizes = dict(zip(mesh._axes, mesh._lengths, strict=True))
    held = tuple(
        () if n % functools.reduce(lambda a, b: a * sizes[b], axes, 1) else axes
        for n, axes in zip(value.shape, dims, strict=True)
    )
    found = E.shard(value, spec=held)
    found._d.device = device_of_mesh(value.device.mesh._joined(mesh, "redistribute"))
    if found._d.laid != dims:  # a dim does not divide, or an axis has one device
        found._d.memory.dims = dims
    return found


def _changed(dims: Dims, mesh: DeviceMesh, placements: Sequence[Placement], both: DeviceMesh | None = None) -> Dims:
    """How a tensor lies that lay as `dims` say, and on the axes of `mesh` now lies as `placements` do.

    both: the mesh that it lies on; None: that of `mesh`.
    """
    own = mesh._own_axes
    said = dims_of(placements, own, len(dims))
    order = (both or mesh)._axes.index
    kept = [tuple(axis for axis in axes if axis not in own) for axes in dims]
    return tuple(tuple(sorted((*a, *b), key=order)) for a, b in zip(kept, said, strict=True))


def _from_own(part: Any, mesh: DeviceMesh, placements: Sequence[Placement] | None, shape: Sequence[int] | None) -> Any:
    if not isinstance(part, Tensor) or is_distributed(part):
        raise RuntimeError(LOCAL_ONLY.format(DTensor if is_distributed(part) else type(part)))
    given = checked(placements, mesh.ndim, part.ndim)
    _checked_place(mesh)
    found = joined(part, mesh, given, shape)
    return _laid(found, mesh, _reduced(given)) if any(map(Placement.is_partial, given)) else found


def sent_by(rank: int | None, tensor: Tensor, mesh: DeviceMesh) -> Tensor:
    """The plain `tensor` of process `rank` of the mesh, where several processes have one each; None: this one's."""
    here = is_meta(tensor) or not current_interpreter().immediate
    if rank is None or mesh._numbers is None or is_distributed(tensor) or here:
        return tensor
    _checked_place(mesh)
    about = {"ranks": mesh._numbers, "source": rank}
    return Tensor._wrap(world.transport.run("broadcast", tensor._array(), about))


def _reduced(placements: tuple[Placement, ...]) -> tuple[Placement, ...]:
    return tuple(Replicate() if isinstance(p, Partial) else p for p in placements)


def _checked_place(mesh: DeviceMesh) -> device:
    """The mesh as a device. RuntimeError if this process has too few, NotImplementedError for ranks out of order."""
    root = mesh._base
    if mesh._numbers is not None:
        if mesh.get_coordinate() is None:
            raise NotImplementedError(OUTSIDE.format(mesh.get_rank(), mesh))
        return device_of_mesh(mesh)
    if not available(mesh):
        raise RuntimeError(TOO_FEW.format(mesh, root.size(), _count(mesh), root.size()))
    if root._ranks.ravel().tolist() != [*range(root.size())]:
        raise NotImplementedError(ORDER.format(root._ranks.tolist()))
    return device_of_mesh(mesh)


def _plain_device(mesh: DeviceMesh) -> device:
    """Where plain tensors of the kind of a mesh are."""
    return CPU if mesh.device_type == "cpu" else check_device(device(mesh.device_type, 0))


def _whole(placement: Placement, parts: Sequence[Tensor]) -> Tensor:
    """What the devices along one dim of a mesh have together."""
    if isinstance(placement, Shard):
        return E.cat(*parts, axis=placement.dim)
    if not isinstance(placement, Partial):
        return parts[0]
    return reduced(placement.reduce_op, E.cat(*(part.unsqueeze(0) for part in parts), axis=0))


@final
class _OfMesh:
    """A method or property of DTensor, as an attribute of the tensors that are on a mesh."""

    __slots__ = ("name", "what")

    def __init__(self, name: str, what: Any):
        self.name, self.what = name, what

    def __get__(self, tensor: Any, owner: type) -> Any:
        if not is_distributed(tensor):
            if one_device.get() and tensor is not None and self.name in _SAME:
                return lambda *args, **kwargs: tensor
            raise AttributeError(
                f"'{owner.__name__}' object has no attribute '{self.name}'", name=self.name, obj=tensor
            )
        return self.what.__get__(tensor, owner)


_SAME = ("full_tensor", "redistribute", "to_local")
for _name in ("device_mesh", "full_tensor", "placements", "redistribute", "to_local"):
    setattr(Tensor, _name, _OfMesh(_name, vars(DTensor)[_name]))
