"""Memory behind tensors: storages, sharing, copies and pickles of tensors that keep it."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np

from eager.core import dtypes, state, tape
from eager.core.device_memory import Memory
from eager.core.interpreter import current_interpreter
from eager.core.meta import is_meta
from eager.core.parameter import Parameter
from eager.core.placed import is_elsewhere, is_placed
from eager.core.sparse import is_sparse
from eager.core.tensor import LEAF_IN_PLACE, Tensor
from eager.engine.language import E
from eager.functional.strides import as_strided
from graphc.errors import BYTES_ARE_NOT_CAPTURED, CaptureError
from graphc.ops.strides import row_major

NOT_LEAF_COPY = (
    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you "
    "were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
    "https://github.com/pytorch/pytorch/pull/103001"
)
APPLY_OF_GRAD = "Can't call {0}() on Variable that requires grad. Use var.detach().{0}() instead."


def address(array: np.ndarray) -> int:
    """Where the first element lies."""
    return array.__array_interface__["data"][0]


def is_plain(tensor: Tensor) -> bool:
    """Whether `tensor` fills its memory, row-major and from the start."""
    array = tensor._d
    if array.__class__ is not np.ndarray:
        return True
    return array.flags.c_contiguous and state.storage_of(array).nbytes == array.nbytes


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory of `array`."""
    return state.storage_of(array)


class _Storage:
    """Memory of tensors; two are of the same memory if their `data_ptr()` are equal."""

    __slots__ = ("_owner",)
    is_cuda = False
    is_sparse = False

    def __init__(self, owner: np.ndarray):
        self._owner = owner

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return address(self._owner)

    def nbytes(self) -> int:
        """The size in bytes."""
        return self._owner.nbytes

    @property
    def device(self) -> Any:
        from eager.core.devices import CPU

        return CPU

    def _text(self, values: Sequence[Any], kind: str) -> str:
        """As PyTorch prints a storage of that kind: a line for each of its values, and what it is."""
        return (
            " " + "\n ".join(map(str, values)) + f"\n[torch.storage.{kind}device={self.device}) of size {len(values)}]"
        )


def _bytes_of(owner: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """All of the memory of `owner`, in the order in which it lies there, as elements of `dtype`."""
    lowest = sorted(range(owner.ndim), key=lambda i: -owner.strides[i])
    flat = owner.transpose(lowest).reshape(-1)  # an owner has no gaps: this is a view
    return flat.view(dtype)


@final
class UntypedStorage(_Storage):
    """Memory as bytes. As `torch.UntypedStorage`."""

    __slots__ = ()

    def __len__(self) -> int:
        return self._owner.nbytes

    def size(self) -> int:
        """The size in bytes."""
        return self._owner.nbytes

    def __getitem__(self, index: Any) -> Any:
        return _bytes_of(self._owner, np.dtype(np.uint8))[index].tolist()

    def __repr__(self) -> str:
        return self._text(self.tolist(), "UntypedStorage(")

    def tolist(self) -> list[int]:
        """The bytes."""
        return _bytes_of(self._owner, np.dtype(np.uint8)).tolist()


@final
class TypedStorage(_Storage):
    """Memory as elements of one dtype. As `torch.TypedStorage`."""

    __slots__ = ("dtype",)

    def __init__(self, owner: np.ndarray, dtype: dtypes.dtype):
        super().__init__(owner)
        self.dtype = dtype

    @property
    def _elements(self) -> np.ndarray:
        return _bytes_of(self._owner, self.dtype.numpy)

    def __len__(self) -> int:
        return self._owner.nbytes // self.dtype.itemsize

    def size(self) -> int:
        """The number of elements."""
        return len(self)

    def element_size(self) -> int:
        """Bytes in an element."""
        return self.dtype.itemsize

    def __getitem__(self, index: Any) -> Any:
        return self._elements[index].tolist()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements[index] = value
        state.note_write(self._owner)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements.tolist())

    def tolist(self) -> list[Any]:
        """The elements."""
        return self._elements.tolist()

    def __repr__(self) -> str:
        return self._text(self.tolist(), f"TypedStorage(dtype={self.dtype}, ")

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return UntypedStorage(self._owner)


def _known_memory(tensor: Tensor, what: str) -> np.ndarray:
    """The array of a tensor. CaptureError for a traced one: its values would be in other memory."""
    if tensor._d.__class__ is not np.ndarray and tensor._d.captured:
        raise CaptureError(BYTES_ARE_NOT_CAPTURED.format(what=what))
    return tensor._array()


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory behind the tensor. As `torch.Tensor.untyped_storage`."""
    return UntypedStorage(owner_of(_known_memory(self, "untyped_storage()")))


def storage(self: Tensor) -> TypedStorage:
    """The memory behind the tensor, as elements of its dtype. As `torch.Tensor.storage`."""
    return TypedStorage(owner_of(_known_memory(self, "storage()")), self.dtype)


def data_ptr(self: Tensor) -> int:
    """The address of the first element; 0 if there is none. As `torch.Tensor.data_ptr`."""
    if is_placed(self):
        return id(self._d.memory) + self._d.offset * self._d.numpy_dtype.itemsize if math.prod(self._d.shape) else 0
    array = _known_memory(self, "data_ptr()")
    return address(array) if array.size else 0


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both show the same places of the same memory. As `torch.Tensor.is_set_to`."""
    if is_placed(self) or is_placed(tensor):
        return self.device is tensor.device and data_ptr(self) == data_ptr(tensor) and self._d.shape == tensor._d.shape
    a, b = self._array(), tensor._array()
    return address(a) == address(b) and a.shape == b.shape and a.strides == b.strides


def dim_order(self: Tensor) -> tuple[int, ...]:
    """The dims from the one with the longest step in memory to the one with the shortest. As `Tensor.dim_order`."""
    steps = self.stride() if is_placed(self) else self._array().strides
    return tuple(sorted(range(len(steps)), key=lambda i: (-steps[i], i)))


def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = (), stride: Any = ()) -> Tensor:
    """Let the tensor show other memory: that of a tensor, or of a storage at an offset. As `torch.Tensor.set_`."""
    if not current_interpreter().immediate:
        return _traced_set(self, source, storage_offset, size, stride)
    if self._n is not None and self.is_leaf and state.grad_enabled():
        raise RuntimeError(LEAF_IN_PLACE)
    left: Any = self._d
    if source is None:
        self._d = np.empty(0, self._dtype())
    elif isinstance(source, Tensor) and not size:
        self._d = source._d if is_placed(source) else source._array()
    else:
        dtype = self._dtype()
        elements = _bytes_of(source._owner if isinstance(source, _Storage) else owner_of(source._array()), dtype)
        size = tuple(size) if size else (len(elements) - storage_offset,)
        steps = tuple(stride) if stride else tuple(math.prod(size[i + 1 :]) for i in range(len(size)))
        needed = storage_offset + 1 + sum((n - 1) * s for n, s in zip(size, steps, strict=True))
        if 0 not in size and needed > len(elements):
            raise RuntimeError(
                f"setStorage: sizes {list(size)}, strides {list(steps)}, storage offset {storage_offset}, and itemsize "
                f"{dtype.itemsize} requiring a storage size of {needed * dtype.itemsize} are out of bounds for storage "
                f"of size {elements.nbytes}"
            )
        at = storage_offset * dtype.itemsize
        self._d = np.ndarray(size, dtype, elements, at, [step * dtype.itemsize for step in steps])
    if left.__class__ is np.ndarray:
        state.note_write(left)  # what has saved the tensor looks at memory that it does not show any more
    return self


def _traced_set(self: Tensor, source: Any, offset: int, size: Any, stride: Any) -> Tensor:
    """`set_` under a trace, where memory is what a tensor shows."""
    if source is None:
        source = Tensor._wrap(np.empty(0, self._dtype()))
    if not isinstance(source, Tensor) or source._dtype() != self._dtype() or self._n is not None:
        raise CaptureError(BYTES_ARE_NOT_CAPTURED.format(what="set_() with a storage, or for another dtype or history"))
    if size:
        source = as_strided(source, size, stride or row_major(tuple(size)), offset)
    return self._show(source.detach(), "set_")


def apply_(self: Tensor, callable: Any) -> Tensor:
    """Replace each element by `callable(element)`; slow. As `torch.Tensor.apply_`."""
    return _map_into(self, "apply_", callable)


def map_(self: Tensor, tensor: Tensor, callable: Any) -> Tensor:
    """Replace each element by `callable(element, element of tensor)`; slow. As `torch.Tensor.map_`."""
    return _map_into(self, "map_", callable, np.broadcast_to(tensor._array(), self._d.shape))


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Any) -> Tensor:
    """Replace each element by `callable(element, element of x, element of y)`; slow. As `torch.Tensor.map2_`."""
    others = (np.broadcast_to(t._array(), self._d.shape) for t in (x, y))
    return _map_into(self, "map2_", callable, *others)


def _map_into(self: Tensor, name: str, function: Any, *others: np.ndarray) -> Tensor:
    if self._n is not None:
        raise RuntimeError(APPLY_OF_GRAD.format(name))
    array = self._writable()
    rows = zip(array.ravel().tolist(), *(other.ravel().tolist() for other in others), strict=True)
    array[...] = np.array([function(*row) for row in rows], array.dtype).reshape(array.shape)
    state.note_write(array)
    return self


def deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy of a leaf, its gradient and its memory; what shares memory here does so in the copy.

    RuntimeError for a tensor with history.
    """
    if not self.is_leaf:
        raise RuntimeError(NOT_LEAF_COPY)
    if id(self) in memo:
        return memo[id(self)]
    if not current_interpreter().immediate:
        return _traced_copy(self, memo)
    if is_meta(self):
        return memo.setdefault(id(self), _without_data(type(self), self._d, self._n is not None))
    if is_placed(self):
        return _placed_copy(self, memo)
    if is_sparse(self):
        data = self._d
        return memo.setdefault(id(self), sparse_again(type(self), data.layout, [deepcopy(p, memo) for p in data.parts],
                                                      data.shape, data.coalesced))  # fmt: skip
    array = self._array()
    owner = owner_of(array)
    if id(owner) not in memo:
        memo[id(owner)] = np.array(owner, order="K")
        memo.setdefault(id(memo), []).append(owner)  # alive until the whole copy is done, so that its id stays its own
    copied = rebuild(type(self), memo[id(owner)], array.dtype, address(array) - address(owner), array.shape,
                     array.strides, self._n is not None)  # fmt: skip
    old = getattr(self, "_g", None)
    if old is not None:
        copied._g = deepcopy(old, memo)
    memo[id(self)] = copied
    if (own := vars(self)) and not isinstance(self, Parameter):  # whose attributes PyTorch leaves behind
        vars(copied).update(copy.deepcopy(own, memo))
    return copied


def _placed_copy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy of a leaf on a device; arrays there never change, so that they need not be copied."""
    memory = self._d.memory
    if id(memory) not in memo:
        memo[id(memory)] = Memory(memory.array, memory.stride)
        memo.setdefault(id(memo), []).append(memory)
    copied = memo[id(self)] = _without_data(type(self), self._d.of(memo[id(memory)]), self._n is not None)
    if (old := getattr(self, "_g", None)) is not None:
        copied._g = deepcopy(old, memo)
    return copied


def _traced_copy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    copied = E.clone(self.detach())
    copied.__class__ = type(self)
    if self._n is not None:
        copied.requires_grad_()
    memo[id(self)] = copied
    if (grad := self.grad) is not None:
        copied.grad = deepcopy(grad, memo)
    return copied


def reduced(self: Tensor) -> tuple[Any, ...]:
    """How a tensor is pickled: its memory, once for all tensors that share it, and its place there."""
    if is_elsewhere(self):
        return _without_data, (type(self), self._d, self._n is not None)
    if is_sparse(self):
        data = self._d
        return sparse_again, (type(self), data.layout, data.parts, data.shape, data.coalesced)
    own = (vars(self),) if vars(self) else ()  # the attributes that it has been given
    array = self._array()
    owner = owner_of(array)
    if not (owner.flags.c_contiguous or owner.flags.f_contiguous):
        owner = array = np.ascontiguousarray(array)  # a pickled array comes back in one of these two orders
    offset = address(array) - address(owner)
    kind = None if type(self) is Tensor else type(self)  # whose name `graphc run` changes
    return rebuild, (kind, owner, array.dtype, offset, array.shape, array.strides, self._n is not None), *own


def sparse_again(kind: type[Tensor], layout: str, parts: Sequence[Tensor], shape: Any, coalesced: bool) -> Tensor:
    """The sparse tensor made of `parts`."""
    from eager.sparse.construction import of_parts

    t = of_parts(layout, parts, shape, coalesced)
    t.__class__ = kind
    return t


def _without_data(kind: type[Tensor], data: Any, requires_grad: bool) -> Tensor:
    t = object.__new__(kind)
    t._d, t._n = data, None
    return t.requires_grad_() if requires_grad else t


def rebuild(kind: type[Tensor] | None, owner: np.ndarray, dtype: np.dtype, offset: int, shape: tuple[int, ...],
            strides: tuple[int, ...], requires_grad: bool) -> Tensor:  # fmt: skip
    """The tensor, of class `kind` if not of Tensor itself, that shows the memory of `owner` from byte `offset` on."""
    t = object.__new__(kind or Tensor)
    t._n = None
    if (owner.dtype, owner.shape, owner.strides) == (dtype, shape, strides):
        t._d = owner
    else:
        t._d = np.ndarray(shape, dtype, _bytes_of(owner, np.dtype(np.uint8)), offset, strides)
    if requires_grad:
        t._n = tape.new_leaf(t)
    return t
