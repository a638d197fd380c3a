"""What every function that draws random numbers is made of: the default generator, `sample`, and checks.

Every draw ends in `sample`. Under a trace it hands the draw itself to the interpreter, so that a compiled program draws
anew at each call, in program order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from eager.core import dtypes
from eager.core.devices import CPU, META, check_device, device
from eager.core.interpreter import current_interpreter, on_arrays
from eager.core.layouts import memory_order
from eager.core.limits import finfo
from eager.core.meta import Meta
from eager.core.tensor import Tensor
from eager.engine.crossing import transferred
from eager.engine.language import E
from eager.functional.creation import dtype_or
from eager.rng.generator import DeviceGenerator, Generator
from graphc.ops import dims
from graphc.ops.dtypes import BOOL, default_float, is_floating, is_inexact
from graphc.ops.rules import c_name, torch_name

C_NAMES = {"Byte": "unsigned char", "Char": "signed char"}
NEEDS_FLOAT = "Only Tensors of floating point and complex dtype can require gradients"
OTHER_GENERATOR = "Expected a '{}' device type for generator but found '{}'"
BAD_PROBABILITY = (
    "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If so, please "
    "report an enhancement request to PyTorch.)"
)

default_generator = Generator.unpredictable()


def sample(
    draw: Callable[[tuple[int, ...]], np.ndarray], shape: tuple[int, ...], dtype: np.dtype, source: Generator,
    like: Tensor | None = None, device: Any = None,
) -> Tensor:  # fmt: skip
    """The Tensor that `draw(shape)` makes, from `source`: now, or under a trace at each call of the program.

    like: the tensor for which the numbers are drawn. None are drawn for a meta tensor, or on that device.
    """
    if like is not None and device is None:
        return current_interpreter().random(draw, shape, dtype, source, like)
    where = check_device(device)
    if where is META:
        return Tensor._wrap(Meta(shape, dtype))
    drawn = current_interpreter().random(draw, shape, dtype, source, like)
    return drawn if where is CPU else transferred(drawn, where)


def sample_like(
    draw: Callable[[tuple[int, ...]], np.ndarray], like: Tensor, dtype: np.dtype, source: Generator
) -> Tensor:
    """`sample` in the shape of `like`, whose elements take the numbers in their order in memory."""
    shape, order = tuple(like._d.shape), memory_order(like)
    if order is None:
        return sample(draw, shape, dtype, source, like)
    stored, back = tuple(shape[axis] for axis in order), tuple(np.argsort(order).tolist())
    if on_arrays(like):
        return Tensor._wrap(np.asarray(draw(stored)).transpose(back))
    return E.permute(sample(draw, stored, dtype, source, like), dims=back)


def finished(result: Tensor, out: Tensor | None, requires_grad: bool) -> Tensor:
    if out is not None:
        from eager.functional.outputs import store

        store(result, out, quiet=True)
        result = out
    return result.requires_grad_(_message=NEEDS_FLOAT) if requires_grad else result


def asked_shape(name: str, size: Sequence[Any]) -> tuple[int, ...]:
    """The shape that `f(2, 3)` or `f((2, 3))` asks for. Raises PyTorch's TypeError and RuntimeError."""
    if len(size) == 1 and not hasattr(size[0], "__index__"):
        size = size[0]
    elif len(size) == 1 and isinstance(size[0], Tensor) and size[0].ndim:
        size = size[0].tolist()
    if not isinstance(size, Iterable) or isinstance(size, str) or not all(hasattr(n, "__index__") for n in size):
        raise TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    shape = tuple(map(dims.index, size))
    for n in shape:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    return shape


def float_dtype(dtype: Any, kernel: str, out: Tensor | None = None) -> np.dtype:
    return check_float(dtype_or(dtype, default_float(), out=out), kernel)


def check_float(dtype: np.dtype, kernel: str) -> np.dtype:
    if not is_inexact(dtype):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{torch_name(dtype)}'")
    return dtype


_of_devices: dict[device, Generator] = {}  # their default generators


def source_of(generator: Generator | None, where: Any = None) -> Generator:
    """The generator to draw from: the default one of the device (or of the tensor) `where` if None is given.

    RuntimeError for a generator of another kind of device.
    """
    if where is not CPU:  # a device that the user has made is another object
        where = where.device if isinstance(where, Tensor) else check_device(where)
    if generator is not None:
        wanted = "cpu" if where is META else where.type
        if generator.device.type != wanted:
            raise RuntimeError(OTHER_GENERATOR.format(wanted, generator.device.type))
        return generator
    if where.mesh is not None:  # the numbers that a single device would draw
        where = CPU if where.type == "cpu" else check_device(device(where.type, 0))
    return default_generator if where is CPU or where is META else generator_of(where)


def generator_of(where: device) -> Generator:
    """The default generator of a device that is not the CPU, seeded as that of the CPU was last."""
    found = _of_devices.get(where)
    if found is None:
        found = _of_devices[where] = DeviceGenerator.of_seed(where, default_generator.initial_seed())
    return found


def seed_devices(seed: int, kind: str = "") -> None:
    """Seed the default generators of all devices, or of those of one kind."""
    for where in [d for d in _of_devices if not kind or d.type == kind]:
        _of_devices[where].manual_seed(seed)


def integer_argument(name: str, arg: str, position: int, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}(): argument '{arg}' (position {position}) must be int, not {type(value).__name__}")
    return dims.index(value)


def check_range(low: int, high: int, dtype: np.dtype) -> None:
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if dtype.kind == "c":
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if is_floating(dtype):
        limits = finfo(dtypes.BY_NUMPY[dtype])
        first, last = limits.min, limits.max
    else:
        first, last = (0, 1) if dtype == BOOL else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    name = c_name(dtype) if is_floating(dtype) else C_NAMES.get(torch_name(dtype), torch_name(dtype).lower())
    if not first <= low <= last:
        raise RuntimeError(f"from is out of bounds for {name}")
    if not first <= high - 1 <= last:
        raise RuntimeError(f"to - 1 is out of bounds for {name}")


def check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")


def bernoulli_with(like: Tensor, p: float, generator: Generator | None) -> Tensor:
    """Ones with probability `p`, else zeros, in the shape and dtype of `like`, drawn row by row."""
    check_probability(p)
    shape, kind, source = like._d.shape, like._dtype(), source_of(generator, like)
    return sample(lambda shape: source.bernoulli(shape, kind, p), shape, kind, source, like)


def bernoulli_of(p: Tensor, generator: Generator | None, into: Tensor | None = None) -> Tensor:
    """Ones with the probabilities `p`, else zeros: in the dtype of `p`, or for the memory of `into`."""
    shape, kind, source = p._d.shape, p._dtype(), source_of(generator, p if into is None else into)
    if on_arrays(p):  # under a trace the probabilities are not known
        array = p._array()
        if not bool(np.all((array >= 0) & (array <= 1))):
            raise RuntimeError(BAD_PROBABILITY)
    draw = lambda shape: source.uniform(shape, kind)
    drawn = sample(draw, shape, kind, source, p) if into is None else sample_like(draw, into, kind, source)
    return E.cast(drawn < p.detach(), dtype=kind if into is None else into._dtype())


def check_std(std: float) -> None:
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
