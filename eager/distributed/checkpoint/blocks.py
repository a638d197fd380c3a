"""Array-like values as blocks: which parts of a global array this process holds, and what takes such parts back.

A value is of one of these kinds, told apart by what it can do:

- sharded: it has PyTorch's protocol for checkpoints, `__create_chunk_list__()` and `__get_tensor_shard__(index)`
- a `jax.Array`, or a DTensor, which lies in one: it has `addressable_shards`; of the copies of a block, the one with
  replica 0 is kept
- a Tensor, a Generator, an array or scalar of NumPy: one block
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from eager.checkpoints.description import DTYPES, REAL_OF
from eager.core import dtypes
from eager.core.grad_mode import no_grad
from eager.core.placed import is_placed
from eager.core.tensor import Tensor
from eager.distributed.checkpoint.metadata import MetadataIndex
from eager.rng.generator import Generator

NO_DTYPE = "cannot save {name}: arrays of {dtype} are none that a checkpoint can hold"
Read = Callable[["Region"], np.ndarray]


class Region(NamedTuple):
    """A block of an array: where it begins, and its shape."""

    offsets: tuple[int, ...]
    shape: tuple[int, ...]

    @classmethod
    def whole(cls, shape: Any) -> Region:
        return cls((0,) * len(shape), tuple(shape))

    @classmethod
    def of_index(cls, index: tuple[slice, ...], shape: tuple[int, ...]) -> Region:
        """What a tuple of slices with step 1 shows of an array of `shape`."""
        bounds = [part.indices(size)[:2] for part, size in zip(index, shape, strict=True)]
        return cls(tuple(low for low, _ in bounds), tuple(high - low for low, high in bounds))

    def within(self, outer: Region) -> tuple[slice, ...]:
        """This region as an index into an array that holds `outer`."""
        return tuple(
            slice(low - start, low - start + size)
            for low, size, start in zip(self.offsets, self.shape, outer.offsets, strict=True)
        )

    def common(self, other: Region) -> Region | None:
        """What lies in both; None for nothing. An array without dims is one element."""
        lows = tuple(map(max, self.offsets, other.offsets))
        sizes = tuple(
            min(a + n, b + m) - low
            for a, n, b, m, low in zip(self.offsets, self.shape, other.offsets, other.shape, lows, strict=True)
        )
        return None if any(size <= 0 for size in sizes) else Region(lows, sizes)


class Blocks(NamedTuple):
    """An array-like value. kind: what it is again without a template; blocks: (region, function that gives its data)"""

    kind: str
    dtype: np.dtype
    shape: tuple[int, ...]
    blocks: list[tuple[Region, Callable[[], np.ndarray]]]


def blocks_of(value: Any, name: str) -> Blocks | None:
    """What this process holds of `value`; None if it is no array. TypeError for a dtype that cannot be saved."""
    found = _blocks_of(value)
    if found is not None and found.dtype.name not in DTYPES:
        raise TypeError(NO_DTYPE.format(name=name, dtype=found.dtype))
    return found


def _blocks_of(value: Any) -> Blocks | None:
    if is_sharded(value):
        regions = _chunks(value)
        return Blocks("tensor", value.dtype.numpy, tuple(value.shape), [
            (region, lambda k=k, region=region: _array_of(_shard(value, k, region)))
            for k, region in enumerate(regions)
        ])  # fmt: skip
    if (array := _in_parts(value)) is not None:
        shape = tuple(array.shape)
        return Blocks("tensor", np.dtype(array.dtype), shape, [
            (Region.of_index(shard.index, shape), lambda shard=shard: np.asarray(shard.data))
            for shard in array.addressable_shards if shard.replica_id == 0
        ])  # fmt: skip
    if isinstance(value, Tensor):
        return _one("tensor", value.dtype.numpy, value.shape, lambda: _array_of(value))
    if isinstance(value, (np.ndarray, np.generic)):
        kind = "array" if isinstance(value, np.ndarray) else "scalar"
        return _one(kind, value.dtype, value.shape, lambda: np.asarray(value))
    if isinstance(value, Generator):
        state = value.get_state()
        return _one("generator", np.dtype(np.uint8), state.shape, lambda: _array_of(state))
    return None


def _one(kind: str, dtype: np.dtype, shape: Any, data: Callable[[], np.ndarray]) -> Blocks:
    return Blocks(kind, dtype, tuple(shape), [(Region.whole(shape), data)])


def _in_parts(value: Any) -> Any:
    """The `jax.Array` that a value is, or that a tensor on a mesh lies in; None if it is neither."""
    if isinstance(value, Tensor):
        return value._d.array if is_placed(value) and value.device.mesh is not None else None
    return value if hasattr(value, "addressable_shards") else None


def is_sharded(value: Any) -> bool:
    """Whether a value has PyTorch's protocol for values of which each process holds a part."""
    return hasattr(value, "__create_chunk_list__")


def is_array(value: Any) -> bool:
    """Whether `blocks_of` has something to say of a value."""
    known = (Tensor, np.ndarray, np.generic, Generator)
    return isinstance(value, known) or is_sharded(value) or hasattr(value, "addressable_shards")


def _array_of(tensor: Any) -> np.ndarray:
    return tensor.detach().cpu()._array()


def _chunks(value: Any) -> list[Region]:
    return [Region(tuple(c.offsets), tuple(c.sizes)) for c in value.__create_chunk_list__()]


def _shard(value: Any, k: int, region: Region) -> Any:
    return value.__get_tensor_shard__(MetadataIndex("", region.offsets, k))


def regions_needed(template: Any, shape: tuple[int, ...]) -> list[Region]:
    """The regions of an array of `shape` that `restored` will read for a template."""
    if is_sharded(template):
        return _chunks(template)
    if (array := _in_parts(template)) is not None:
        return [Region.of_index(shard.index, shape) for shard in array.addressable_shards]
    return [Region.whole(shape)]


def restored(template: Any, kind: str, shape: tuple[int, ...], read: Read) -> Any:
    """The saved array in the form of `template`: written into it if it can be written, else a new value like it.

    read: gives the data of a region. Only the regions that this process needs are asked for.
    """
    if is_sharded(template):
        with no_grad():
            for k, region in enumerate(_chunks(template)):
                _shard(template, k, region).copy_(Tensor._wrap(read(region)))
        return template
    if (array := _in_parts(template)) is not None:
        jax: Any = sys.modules["jax"]  # there is one, since there is an array of it
        part = lambda index: read(Region.of_index(index, shape)).astype(array.dtype, copy=False)
        with jax.enable_x64(True):
            made = jax.make_array_from_callback(shape, array.sharding, part)
        if array is template:
            return made
        template._d.write(made)
        return template
    array = read(Region.whole(shape))
    if isinstance(template, Tensor):
        with no_grad():
            template.copy_(Tensor._wrap(array))
        return template
    if isinstance(template, np.ndarray) and template.flags.writeable:
        template[...] = array
        return template
    if isinstance(template, Generator):
        return template.set_state(Tensor._wrap(array))
    return _MAKE[kind](array)


# kind of an array in a checkpoint -> what it is where no template says otherwise
_MAKE: dict[str, Callable[[np.ndarray], Any]] = {
    "tensor": Tensor._wrap,
    "array": lambda array: array,
    "scalar": lambda array: array[()],
    "generator": lambda array: Generator().set_state(Tensor._wrap(array)),
}
KINDS = tuple(_MAKE)


def as_stored(array: np.ndarray) -> np.ndarray:
    """What lies in a file: contiguous, complex numbers as pairs of reals along a new last dim."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    real = REAL_OF.get(array.dtype.name)
    return array if real is None else array[..., None].view(real)


def numpy_of(name: str) -> np.dtype:
    """The dtype of NumPy that holds elements of the dtype named so."""
    return DTYPES[name].numpy


def dtype_of(name: str) -> dtypes.dtype:
    return dtypes.of_numpy(numpy_of(name))
