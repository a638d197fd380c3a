"""Data that lie elsewhere than in NumPy's memory: on a JAX device, or several, or, of meta tensors, nowhere.

A tensor on a device has a `Placed` beneath it. JAX's arrays never change, and tensors do: so a `Memory` holds its
present array, and a view is the steps that lead to it from there, taken again when the memory has been written.

Who runs ops on such arrays is a *runtime* (`eager.core.runtime`), loaded when the first tensor is put on a device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn, final

import numpy as np

from eager.core import state
from eager.core.device_memory import Memory
from eager.core.devices import CPU, META, check_device, device, device_of_mesh
from eager.core.meta import MIXED, Meta, NoDataError, is_of_caller
from eager.core.runtime import Dims, runtime
from eager.core.sparse import is_sparse
from graphc.ops.aval import Aval, results_of
from graphc.ops.spec import OPS, Op
from graphc.ops.stand_in import StandIn
from graphc.ops.steps import REPEATED, Step, may_repeat, place_of_view, steps_of, strides_of_pointwise
from graphc.ops.strides import Strides, normal, row_major, strides_of

DIFFERENT = "Expected all tensors to be on the same device, but found at least two devices, {} and {}!"
ODD_ONE = (
    "Expected all tensors to be on the same device, but got {arg} is on {other}, different from other tensors on {most}"
    " (when checking argument in method wrapper_{kind}_{op})"
)
NOT_DISTRIBUTED = (
    "aten.{}.default: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling "
    "distributed operators! Please see "
    "https://docs.pytorch.org/docs/main/distributed.tensor.html#mixed-tensor-and-dtensor-operations for more details."
)
ON_HOST = "this operation computes in the memory of the CPU, and its tensor is on {}. Use Tensor.cpu() first."

implicit_replication: ContextVar[bool] = ContextVar("implicit_replication", default=False)  # as PyTorch's context says


@final
class Placed(StandIn):
    """In place of the ndarray of a tensor on a device.

    memory   what it shows, through `steps`
    device   where that is
    stride   how it lies there, in elements; None if row-major, and from `offset` on
    """

    __slots__ = ("_array", "_seen", "device", "memory", "numpy_dtype", "offset", "shape", "steps", "stride")

    def __init__(self, array: Any, where: device, memory: Memory | None = None, steps: tuple[Step, ...] = (),
                 stride: Strides = None, offset: int = 0):  # fmt: skip
        self.memory = memory if memory is not None else Memory(array, stride)
        self.shape: tuple[int, ...] = tuple(array.shape)
        self.numpy_dtype = np.dtype(array.dtype)
        self.device, self.steps, self.stride, self.offset = where, steps, stride, offset
        self._array, self._seen = array, self.memory.version

    @classmethod
    def lying_in(cls, pack: Memory, steps: tuple[Step, ...], aval: Aval, where: device) -> Placed:
        """What has a memory of its own, that is what `steps` lead to in `pack`, until somebody writes it."""
        memory = Memory(None, None)
        memory.lie_in(pack, steps)
        found = cls(aval, where, memory)
        found._array, found._seen = None, -1
        return found

    @property
    def array(self) -> Any:
        """The runtime's array of the values as they are now."""
        if self._seen != self.memory.version:
            self._array, self._seen = runtime().read(self.memory.array, self.steps), self.memory.version
        return self._array

    @property
    def values(self) -> np.ndarray:
        """The values, fetched."""
        return runtime().fetch(self.array)

    def write(self, value: Any, repeated: bool = False) -> None:
        """Give what this shows the values of an array of its shape and dtype.

        RuntimeError if elements share a place, unless all are given the same value, as `repeated` says.
        """
        if self.steps and not repeated and may_repeat(self.steps) and self.repeats:
            raise RuntimeError(REPEATED)
        memory = self.memory
        written = runtime().write(memory.array, self.steps, value) if self.steps else value
        memory.array = written if self.device.mesh is None else runtime().alike(written, memory.array)
        memory.version += 1
        state.note_write(memory)
        self._array, self._seen = value if self.steps else memory.array, memory.version

    @property
    def dims(self) -> Dims:
        """On a mesh: the axes that each dim is split over, as it was said, or as it has come about."""
        if not self.steps and self.memory.dims is not None:
            return self.memory.dims
        return self.laid

    def local(self) -> np.ndarray:
        """On a mesh: the values of this process's first device, as PyTorch splits them."""
        mesh = self.device.mesh
        if mesh._numbers is None:  # all parts are here
            found, held = self.values, ((),) * len(self.shape)
        else:
            found, held = runtime().local(self.array), self.laid
        # what lies in parts does so as was said, but for axes of one device
        said = [() if there else axes for axes, there in zip(self.dims, held, strict=True)]
        return found[(*map(mesh._chunk, self.shape, said), ...)]

    @property
    def laid(self) -> Dims:
        """On a mesh: the axes that each dim is split over."""
        return runtime().dims(self.array) or ((),) * len(self.shape)

    @property
    def repeats(self) -> bool:
        """Whether elements share a place in memory."""
        return self.stride is not None and any(s == 0 and n > 1 for s, n in zip(self.stride, self.shape, strict=True))

    def view(self, op: Op, params: dict[str, Any], array: Any) -> Placed | None:
        """`array`, the result of `op` on this, as a view of its memory; None if `op` copies."""
        place = place_of_view(op, params, self.shape, self.stride, self.numpy_dtype)
        if place is None:
            return None
        steps = (*self.steps, *steps_of(op, params, Aval(self.shape, self.numpy_dtype)))
        stride, apart = place
        ratio = self.numpy_dtype.itemsize / np.dtype(array.dtype).itemsize
        return Placed(array, self.device, self.memory, steps, stride, int(self.offset * ratio) + (apart or 0))

    def shown(self, op: Op, params: dict[str, Any], size: tuple[int, ...], stride: tuple[int, ...],
              offset: int) -> Placed:  # fmt: skip
        """What `op` shows of the whole memory, which lies so."""
        steps = (Step(op, params),)
        array = runtime().read(self.memory.array, steps)
        return Placed(array, self.device, self.memory, steps, normal(size, stride), offset)

    def alone(self) -> Placed:
        """The same values in a memory of their own."""
        copy = Placed(self.array, self.device, stride=dense(self.shape, self.stride))
        copy.memory.dims = None if self.steps else self.memory.dims
        return copy

    def geometry(self, base: Placed) -> dict[str, Any]:
        """Where this lies in the memory of `base`, as parameters of `as_strided`."""
        layout = None if base.stride is None else (base.stride, base.offset)
        return {"size": self.shape, "stride": self.stride or row_major(self.shape), "offset": self.offset,
                "layout": layout}  # fmt: skip

    def hosted_whole(self) -> np.ndarray:
        """The values of the whole memory, as they would lie there."""
        found = runtime().fetch(self.memory.array)
        if self.memory.stride is None:
            return found
        order = sorted(range(found.ndim), key=lambda axis: -(self.memory.stride or ())[axis])
        return np.ascontiguousarray(found.transpose(order)).transpose(np.argsort(order))

    def hosted(self, whole: np.ndarray) -> np.ndarray:
        """What this shows, as a view of `hosted_whole`."""
        for op, params, _ in self.steps:
            shown = op if op.lens is None or op.lens.shown_by is None else OPS[op.lens.shown_by]
            whole = shown.kernel(whole, **params)
        return whole

    def of(self, memory: Memory) -> Placed:
        """The same of another memory, a copy of this one's."""
        return Placed(self.array, self.device, memory, self.steps, self.stride, self.offset)

    def __reduce__(self) -> tuple[Any, ...]:
        steps = tuple((step.op.name, step.params) for step in self.steps)
        of_mesh = self.device.mesh is not None
        dims = self.memory.dims or runtime().dims(self.memory.array) if of_mesh else None
        return _rebuilt, (self.memory, self.device, steps, self.stride, self.offset, dims)

    def spread(self, made: Any) -> Any:
        if self.device.mesh is not None and made._d.__class__ is Placed and made._d.shape == self.shape:
            made._d = like(made._d, self)
        return made

    def force(self, tensor: Any) -> NoReturn:
        raise NoDataError(ON_HOST.format(self.device))

    def read(self, tensor: Any) -> np.ndarray:
        return self.values

    def truth(self, tensor: Any) -> np.ndarray:
        return self.values

    def strides(self, tensor: Any) -> tuple[int, ...] | None:
        return self.stride

    def storage_offset(self, tensor: Any) -> int:
        return self.offset


def _rebuilt(
    memory: Memory, where: device, steps: Any, stride: Strides, offset: int, dims: Dims | None
) -> Placed:  # fmt: skip
    _home(memory, where, dims)
    found = tuple(Step(OPS[name], params) for name, params in steps)
    array = runtime().read(memory.array, found) if found else memory.array
    return Placed(array, check_device(where), memory, found, stride, offset)


def _home(memory: Memory, where: device, dims: Dims | None) -> None:
    """Put the values of a memory on a device, if they are still NumPy's; on a mesh, lying so."""
    if isinstance(memory.array, np.ndarray):
        if where.mesh is not None:
            memory.array, memory.dims = _split(memory.array, where, dims or ())
        else:
            memory.array = runtime().put(memory.array, backing(check_device(where)))


def put(data: Any, where: device) -> Placed:
    """The values of an ndarray, or a Placed, in new memory on the device `where`."""
    placed = data.__class__ is Placed
    given = data.array if placed else data
    if placed and where.mesh is not None and data.device.mesh is not None:
        found = given  # from a part of the mesh to another: the devices are the same
    else:
        found = runtime().put(given, backing(where))
    return Placed(found, where, stride=dense(tuple(data.shape), data.stride if placed else strides_of(data)))


def spread(data: Any, where: device, dims: Dims) -> Placed:
    """The values of an ndarray, or a Placed, in new memory on all devices of a mesh, split over these axes of it.

    A dim that does not divide is whole on each device, and `Placed.dims` is what was said.
    """
    array, said = _split(data.array if data.__class__ is Placed else data, where, dims)
    found = Placed(array, where, stride=dense(tuple(data.shape), data.stride if data.__class__ is Placed else None))
    found.memory.dims = said
    return found


def _split(array: Any, where: device, dims: Dims) -> tuple[Any, Dims | None]:
    """An array put on a mesh, and what was said of it if it does not lie so."""
    sizes = dict(zip(where.mesh._axes, where.mesh._lengths, strict=True))
    counts = [math.prod(sizes[axis] for axis in axes) for axes in dims]
    held = tuple(() if n % m else axes for n, m, axes in zip(array.shape, counts, dims, strict=False))
    return runtime().put(array, over(where, held)), None if held == dims else dims


def like(data: Any, model: Placed) -> Placed:
    """`data`, an ndarray or Placed of the shape of `model`, in new memory that lies where and as that does."""
    if model.device.mesh is None:
        return put(data, model.device)
    if data.__class__ is Placed and (model.steps or model.memory.dims is None):  # it lies as it was said to
        return Placed(runtime().alike(data.array, model.array), model.device, stride=dense(data.shape, data.stride))
    return spread(data, model.device, model.dims)


def given_memory(made: Any, meta: Any) -> Any:
    """`made`, a new tensor for one without values: on the mesh, if that was to be there."""
    data = meta._d
    if data.__class__ is not Meta or data.mesh is None or made._d.__class__ is Meta:
        return made
    made._d = spread(made._d, device_of_mesh(data.mesh), data.dims)
    return made


def dense(shape: tuple[int, ...], strides: Strides) -> Strides:
    """The strides of a copy, which keeps the order of the dims."""
    return None if strides is None else strides_of_pointwise([shape], [strides], shape)


def backing(where: device) -> Any:
    """The runtime's device that `where`, which `check_device` has returned, is; of a mesh, all, each with a copy."""
    if where.mesh is not None:
        return over(where, ())
    return runtime().devices(where.type)[where.index or 0]


def over(where: device, dims: Dims) -> Any:
    """What the runtime's `put` takes in place of a device for arrays that lie so on a mesh."""
    mesh = where.mesh
    return runtime().over(where.type, mesh._lengths, mesh._axes, dims, mesh._numbers)


def is_elsewhere(tensor: Any) -> bool:
    """Whether the values of `tensor` are not in NumPy's memory: on a device, or nowhere. Not so under a trace."""
    kind = tensor._d.__class__
    return kind is not np.ndarray and (kind is Placed or kind is Meta)


def is_placed(tensor: Any) -> bool:
    """Whether `tensor` is on a device."""
    return tensor._d.__class__ is Placed


def data_of(tensor: Any) -> Any:
    """The array of `tensor`, or what is in its place if the values lie elsewhere, or the tensor is sparse."""
    return tensor._d if is_elsewhere(tensor) or is_sparse(tensor) else tensor._array()


def device_of(tensor: Any) -> device:
    """The device of `tensor`."""
    data = tensor._d
    kind = data.__class__
    if kind is np.ndarray:
        return CPU
    if kind is Meta:
        return META if data.mesh is None else device_of_mesh(data.mesh, "meta")
    return getattr(data, "device", CPU)


def filled(shape: Sequence[int], dtype: np.dtype, value: Any, like: Any) -> Any:
    """The data of a tensor full of `value`, where `like`, data, is."""
    if like.__class__ is Meta:
        return Meta(shape, dtype)
    array = np.full(shape, value, dtype)
    return beside(array, like) if like.__class__ is Placed else array


def beside(array: np.ndarray, model: Placed) -> Placed:
    """An ndarray on the device of `model`; on a mesh, of one with the same shape, lying as that does."""
    return like(array, model) if array.shape == model.shape else put(array, model.device)


def zeros_on(where: device, shape: Sequence[int], dtype: np.dtype) -> Any:
    """The data of a tensor of zeros on the device `where`."""
    if where is META:
        return Meta(shape, dtype)
    array = np.zeros(shape, dtype)
    return array if where is CPU else put(array, where)


def common_device(op: Op, tensors: Sequence[Any]) -> device:
    """Where `op` runs on `tensors`, of which some are elsewhere.

    RuntimeError if they are on several devices. A 0-d tensor on the CPU counts as a number, and one of integers or
    bools there may be an index of one elsewhere; constants that this library has made on the way count as neither.
    """
    devices = [META if t._d.__class__ is Meta else device_of(t) for t in tensors]  # results lie on no mesh
    if any(d.mesh is not None for d in devices):
        return _common_mesh(op, tensors, devices)
    where = next(d for d in devices if d is not CPU)
    indexes = "spec" in op.params or where is META
    differing = [
        k for k, (t, d) in enumerate(zip(tensors, devices, strict=True))
        if d is not where and not (d is CPU and (not t._d.shape or (indexes and t._dtype().kind in "iub")))
    ]  # fmt: skip
    if differing:
        given: Callable[[Any], bool] | None = None
        for k in differing:
            if devices[k] is CPU:
                given = given or is_of_caller()
                if not given(tensors[k]):
                    continue
            raise _different(op, k, [d for i, d in enumerate(devices) if i == k or i not in differing])
    return where


def _common_mesh(op: Op, tensors: Sequence[Any], devices: Sequence[device]) -> device:
    """Where `op` runs on tensors of which some are on a mesh: of parts of one mesh, on the part that has them all.

    RuntimeError for several meshes, and for a tensor that is on none, unless it has one element.
    """
    given: Callable[[Any], bool] | None = None
    where: device | None = None
    for t, d in zip(tensors, devices, strict=True):
        if d.mesh is not None:
            where = d if where is None or where is d else device_of_mesh(where.mesh._joined(d.mesh, op.name))
        elif math.prod(t._d.shape) == 1 or implicit_replication.get():
            continue
        elif d is not CPU or (given := given or is_of_caller())(t):
            raise RuntimeError(NOT_DISTRIBUTED.format(op.name))
    assert where is not None
    return where


def _different(op: Op, k: int, devices: list[device]) -> RuntimeError:
    found = list(dict.fromkeys(devices))
    if META in found:
        return RuntimeError(MIXED.format(found[1], found[0]))
    odd = next((d for d in found if d is CPU), found[-1])
    most = next(d for d in found if d is not odd)
    if op.pointwise or op.variadic:
        return RuntimeError(DIFFERENT.format(most, odd))
    named = ODD_ONE.format(arg=op.arg_of(k), other=odd, most=most, kind=most.type.upper(), op=op.name)
    return RuntimeError(named)


def run(op: Op, data: Sequence[Any], params: dict[str, Any], where: device) -> list[Placed]:
    """The results of `op` on operands (Placed or ndarrays, promoted and checked), on the device `where`."""
    # of an ndarray a copy: it may be written before the program has read it
    arrays = [x.array if x.__class__ is Placed else np.array(x) for x in data]
    results = results_of(runtime().run(op, arrays, params))
    if where.mesh is not None:  # a result that depends on no operand's values lies on one device
        results = [r if runtime().dims(r) is not None else runtime().put(r, backing(where)) for r in results]
    if op.view and data[0].__class__ is Placed and (view := data[0].view(op, params, results[0])) is not None:
        return [view]
    stride = None
    if op.pointwise:
        lie = [x.stride if x.__class__ is Placed else strides_of(x) for x in data]
        stride = strides_of_pointwise([x.shape for x in data], lie, tuple(results[0].shape))
    return [Placed(array, where, stride=stride) for array in results]
