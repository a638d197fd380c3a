"""Random numbers: `Generator`, and every function that draws from one.

The streams are PyTorch's CPU streams: MT19937 words, shaped into numbers the way PyTorch does. Uniform numbers, integers,
permutations, Bernoulli samples and fewer than 16 normal numbers are equal bit for bit; longer normal draws agree to the last
bit of sin, cos and log.

Every function ends in `_sample`. Under a trace it hands the draw itself to the interpreter, so that a compiled program
draws anew at each call, in program order.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

import numpy as np

from eager import dtypes
from eager.device import CPU, check_device, device
from eager.inplace import assign
from eager.language import E
from eager.state import current_interpreter
from eager.tensor import Tensor, check_in_place
from graphc.errors import CaptureError
from graphc.ops.dtypes import BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, complex_of, default_float, is_inexact
from graphc.ops.rules import torch_name

DEFAULT_SEED = 67280421310721
WORDS = 624  # of the state of MT19937
MANTISSA = {FLOAT16: 11, FLOAT32: 24, FLOAT64: 53}  # bits of precision
# From here on PyTorch draws 64 bits, so that `% range` stays nearly uniform.
WIDE_RANGE = 2**28
BLOCK = 16  # normal numbers are made 16 at a time, if there are as many

STATE = np.dtype(
    [
        ("seed", "<u8"), ("left", "<i4"), ("seeded", "<i4"), ("next", "<u8"), ("words", "<u8", WORDS), ("normal_x", "<f8"),
        ("normal_y", "<f8"), ("normal_rho", "<f8"), ("has_normal", "<i4"), ("", "V4"), ("next_float", "<f4"),
        ("has_float", "?"), ("", "V3"),
    ]
)  # fmt: skip
SEEDING_IS_NOT_CAPTURED = (
    "{what} cannot be captured in a graph: it would happen once, while tracing, and not at each call.\n"
    "Remedy: call it outside the compiled function."
)


@final
class Generator:
    """A stream of random numbers. As `torch.Generator` on the CPU."""

    def __init__(self, device: Any = "cpu"):
        check_device(device)
        self._next_normal: float | None = None
        self._start(DEFAULT_SEED)

    def _start(self, seed: int) -> None:
        self._seed = seed
        self._words = np.random.MT19937()
        self._words._legacy_seeding(seed & 0xFFFFFFFF)
        self._raw = self._words.random_raw
        self._next_normal = None

    @property
    def device(self) -> device:
        return CPU

    def manual_seed(self, seed: int) -> Generator:
        """Restart the stream from `seed` (64 bits; negative numbers count from 2**64). Returns the generator.

        Raises RuntimeError if `seed` is no integer, ValueError if it does not fit.
        """
        _refuse_capture("manual_seed()")
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        seed = seed.__index__()
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long")
        self._start(seed % 2**64)
        return self

    def seed(self) -> int:
        """Restart the stream from a seed that the operating system draws, and return it."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        """The seed from which the stream was last started."""
        return self._seed

    def get_state(self) -> Tensor:
        """The state as a uint8 tensor of 5056 bytes, in PyTorch's layout."""
        _refuse_capture("get_state()")
        words, position = self._words.state["state"].values()
        state = np.zeros((), STATE)
        state["seed"], state["seeded"] = self._seed, 1
        state["words"], state["next"], state["left"] = words, position, WORDS + 1 - position
        if self._next_normal is not None:
            state["normal_y"], state["has_normal"] = self._next_normal, 1
        return Tensor._wrap(np.frombuffer(state.tobytes(), np.uint8).copy())

    def set_state(self, new_state: Tensor) -> Generator:
        """Continue from a state that `get_state` returned. Raises TypeError or RuntimeError for anything else."""
        _refuse_capture("set_state()")
        if not isinstance(new_state, Tensor) or new_state._dtype() != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        array = new_state._array()
        if array.size != STATE.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE.itemsize} but found the input RNG state size to be "
                f"{array.size}"
            )
        state = np.frombuffer(array.tobytes(), STATE)[0]
        position = WORDS if state["left"] == 1 else int(state["next"])
        if not state["seeded"] or position > WORDS:
            raise RuntimeError("Invalid mt19937 state")
        self._seed = int(state["seed"])
        words = {"key": state["words"].astype(np.uint32), "pos": position}
        self._words.state = {"bit_generator": "MT19937", "state": words}
        self._next_normal = float(state["normal_y"]) if state["has_normal"] else None
        return self

    def clone_state(self) -> Generator:
        """A new generator that will draw the same numbers."""
        return Generator().set_state(self.get_state())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.get_state(),)

    # --- draws: a fresh ndarray each

    def bits(self, count: int, wide: bool = False) -> np.ndarray:
        """`count` random words as uint64: of 64 bits if `wide`, else of 32."""
        if not wide:
            return self._raw(count)
        pairs = self._raw(2 * count)
        return pairs[0::2] << np.uint64(32) | pairs[1::2]

    def uniform(self, shape: tuple[int, ...], dtype: np.dtype, low: float = 0.0, high: float = 1.0) -> np.ndarray:
        """Numbers in [low, high); complex numbers have both parts there."""
        if dtype.kind == "c":
            return self.uniform((*shape, 2), _part(dtype), low, high).view(dtype)[..., 0]
        count = math.prod(shape)
        if dtype == FLOAT64:
            unit = (self.bits(count, wide=True) & np.uint64(2**53 - 1)) * 2.0**-53
        else:
            words = self._raw(count)
            words &= np.uint64(2**24 - 1)
            unit = words.view(np.int64).astype(FLOAT32)
            unit *= np.float32(2.0**-24)
        if (low, high) != (0, 1):
            unit *= unit.dtype.type(high) - unit.dtype.type(low)
            unit += unit.dtype.type(low)
        return unit.astype(dtype, copy=False).reshape(shape)

    def normal(self, shape: tuple[int, ...], dtype: np.dtype, mean: float = 0.0, std: float = 1.0) -> np.ndarray:
        """Normal numbers by the Box-Muller transform; for a complex dtype `std` is that of the complex number."""
        if dtype.kind == "c":
            return self.normal((*shape, 2), _part(dtype), mean, std / math.sqrt(2)).view(dtype)[..., 0]
        count = math.prod(shape)
        if count < BLOCK:
            values = [self._one_normal() * std + mean for _ in range(count)]
            return np.array(values, FLOAT64).astype(dtype).reshape(shape)
        kind = FLOAT64 if dtype == FLOAT64 else FLOAT32
        values = self.uniform((count,), kind)
        whole = count - count % BLOCK
        _box_muller(values[:whole], mean, std)
        if whole < count:  # PyTorch draws the last block anew, overwriting part of the one before
            last = self.uniform((BLOCK,), kind)
            _box_muller(last, mean, std)
            values[-BLOCK:] = last
        return values.astype(dtype, copy=False).reshape(shape)

    def _one_normal(self) -> float:
        if self._next_normal is not None:
            value, self._next_normal = self._next_normal, None
            return value
        angle, squared = (self.bits(2, wide=True) & np.uint64(2**53 - 1)) * 2.0**-53
        radius = math.sqrt(-2.0 * math.log1p(-squared))
        angle = 2.0 * math.pi * angle
        self._next_normal = radius * math.sin(angle)
        return radius * math.cos(angle)

    def integers(self, shape: tuple[int, ...], dtype: np.dtype, low: int, high: int) -> np.ndarray:
        """Integers in [low, high), in any dtype."""
        words = self.bits(math.prod(shape), wide=high - low >= WIDE_RANGE)
        if high - low < 2**64:
            words %= np.uint64(high - low)
        return (words.view(np.int64) + np.int64(low)).astype(dtype).reshape(shape)

    def any_integers(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Integers over the non-negative numbers that `dtype` holds exactly."""
        if dtype.kind == "f":
            end = 2 ** MANTISSA[dtype] + 1
        else:
            end = 2 if dtype == BOOL else int(np.iinfo(dtype).max) + 1
        words = self.bits(math.prod(shape), wide=dtype in (INT64, FLOAT64))
        words %= np.uint64(end)
        return words.astype(dtype).reshape(shape)

    def bernoulli(self, shape: tuple[int, ...], dtype: np.dtype, p: float) -> np.ndarray:
        """One with probability `p`, else zero."""
        return (self.uniform(shape, FLOAT64) < p).astype(dtype)

    def exponential(self, shape: tuple[int, ...], dtype: np.dtype, rate: float) -> np.ndarray:
        """Numbers with density `rate * exp(-rate * x)`."""
        return (-np.log1p(-self.uniform(shape, FLOAT64)) / rate).astype(dtype)

    def permutation(self, n: int, dtype: np.dtype) -> np.ndarray:
        """The numbers 0 to n - 1 in random order (Fisher-Yates, forward)."""
        order = list(range(n))
        offsets = self.bits(max(n - 1, 0)) % np.arange(n, min(n, 1), -1, dtype=np.uint64)
        for i, offset in enumerate(offsets.tolist()):
            j = i + offset
            order[i], order[j] = order[j], order[i]
        return np.array(order, dtype)


def _restore(state: Tensor) -> Generator:
    return Generator().set_state(state)


def _part(dtype: np.dtype) -> np.dtype:
    return FLOAT64 if dtype == complex_of(FLOAT64) else FLOAT32


def _box_muller(values: np.ndarray, mean: float, std: float) -> None:
    """Turn uniform numbers into normal ones, in place: in each block of 16, the first 8 give radii, the others angles."""
    blocks = values.reshape(-1, 2, BLOCK // 2)
    kind = values.dtype.type
    radius = np.sqrt(kind(-2) * np.log(kind(1) - blocks[:, 0]))
    angle = kind(2 * math.pi) * blocks[:, 1]
    np.multiply(radius, np.cos(angle), out=blocks[:, 0])
    np.multiply(radius, np.sin(angle), out=blocks[:, 1])
    if std != 1:
        values *= kind(std)
    if mean != 0:
        values += kind(mean)


def _refuse_capture(what: str) -> None:
    if current_interpreter() is not None:
        raise CaptureError(SEEDING_IS_NOT_CAPTURED.format(what=what))


default_generator = Generator()
default_generator.seed()


def manual_seed(seed: Any) -> Generator:
    """Seed the default generator, and return it. As `torch.manual_seed`."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seed the default generator from the operating system; returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator as a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Continue the default generator from `new_state`."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Iterable[Any] | None = None, enabled: bool = True, **ignored: Any) -> Iterator[None]:
    """A context that restores the state of the default generator at its end. As `torch.random.fork_rng`."""
    if not enabled:
        yield
        return
    before = default_generator.get_state()
    try:
        yield
    finally:
        default_generator.set_state(before)


# --- the one place where numbers are drawn


def _sample(draw: Callable[[], np.ndarray], shape: tuple[int, ...], dtype: np.dtype) -> Tensor:
    """The Tensor that `draw()` makes: now, or under a trace at each call of the program."""
    interpreter = current_interpreter()
    if interpreter is None:
        return Tensor._wrap(draw())
    return interpreter.random(draw, shape, dtype)  # type: ignore[attr-defined]


def _made(result: Tensor, out: Tensor | None, requires_grad: bool) -> Tensor:
    if out is not None:
        result = assign(out, result, "copy")
    return result.requires_grad_(_message=NEEDS_FLOAT) if requires_grad else result


NEEDS_FLOAT = "Only Tensors of floating point and complex dtype can require gradients"


def _shape(name: str, size: Sequence[Any]) -> tuple[int, ...]:
    """The shape that `f(2, 3)` or `f((2, 3))` asks for. Raises PyTorch's TypeError and RuntimeError."""
    if len(size) == 1 and not hasattr(size[0], "__index__"):
        size = size[0]
    elif len(size) == 1 and isinstance(size[0], Tensor) and size[0].ndim:
        size = size[0].tolist()
    if not isinstance(size, Iterable) or isinstance(size, str) or not all(hasattr(n, "__index__") for n in size):
        raise TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    shape = tuple(n.__index__() for n in size)
    for n in shape:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    return shape


def _float_dtype(dtype: Any, kernel: str) -> np.dtype:
    return _check_float(default_float() if dtype is None else dtypes.to_numpy(dtype), kernel)


def _check_float(dtype: np.dtype, kernel: str) -> np.dtype:
    if not is_inexact(dtype):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{torch_name(dtype)}'")
    return dtype


def _source(generator: Generator | None) -> Generator:
    return default_generator if generator is None else generator


def _integer(name: str, arg: str, position: int, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}(): argument '{arg}' (position {position}) must be int, not {type(value).__name__}")
    return value.__index__()


# --- functions


def rand(
    *size: Any,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Uniform numbers in [0, 1), of shape `size`. As `torch.rand`."""
    shape, kind, source = _shape("rand", size), _float_dtype(dtype, "check_uniform_bounds"), _source(generator)
    check_device(device)
    return _made(_sample(lambda: source.uniform(shape, kind), shape, kind), out, requires_grad)


def randn(
    *size: Any,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Standard normal numbers, of shape `size`. As `torch.randn`."""
    shape, kind, source = _shape("randn", size), _float_dtype(dtype, "normal_kernel_cpu"), _source(generator)
    check_device(device)
    return _made(_sample(lambda: source.normal(shape, kind), shape, kind), out, requires_grad)


def randint(
    *bounds_and_size: Any,
    low: int = 0,
    high: int | None = None,
    size: Sequence[int] | None = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Integers in [low, high): `randint(high, size)` or `randint(low, high, size)`. As `torch.randint`.

    Raises RuntimeError for an empty range or bounds that `dtype` (int64 by default) does not hold.
    """
    given = list(bounds_and_size)
    if size is None and given:
        size = given.pop()
    if high is None and given:
        high = given.pop()
    if given:
        low = given.pop()
    if given or size is None or high is None:
        raise TypeError("randint() expects (high, size) or (low, high, size)")
    position = max(len(bounds_and_size) - 1, 1)
    low, high = _integer("randint", "low", 1, low), _integer("randint", "high", position, high)
    shape, kind, source = _shape("randint", (size,)), INT64 if dtype is None else dtypes.to_numpy(dtype), _source(generator)
    check_device(device)
    _check_range(low, high, kind)
    return _made(_sample(lambda: source.integers(shape, kind, low, high), shape, kind), out, requires_grad)


def _check_range(low: int, high: int, dtype: np.dtype) -> None:
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if dtype.kind in "fc":
        return
    first, last = (0, 1) if dtype == BOOL else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    name = C_NAMES.get(torch_name(dtype), torch_name(dtype).lower())
    if not first <= low <= last:
        raise RuntimeError(f"from is out of bounds for {name}")
    if not first <= high - 1 <= last:
        raise RuntimeError(f"to - 1 is out of bounds for {name}")


C_NAMES = {"Byte": "unsigned char", "Char": "signed char", "Long": "long"}


def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Any = dtypes.int64,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A random permutation of the integers 0 to n - 1, of shape (n,). As `torch.randperm`."""
    n = _integer("randperm", "n", 1, n)
    shape, kind, source = _shape("randperm", (n,)), dtypes.to_numpy(dtype), _source(generator)
    check_device(device)
    return _made(_sample(lambda: source.permutation(n, kind), shape, kind), out, requires_grad)


def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Zeros and ones of the shape and dtype of `input`, which holds the probabilities unless `p` is given.

    Raises RuntimeError for a probability outside [0, 1], NotImplementedError for an integer `input`.
    """
    if p is not None:
        return _made(_bernoulli(input, p, generator), out, False)
    _check_float(input._dtype(), "bernoulli_tensor_cpu_p_")
    return _made(_bernoulli_of(input, input._dtype(), generator), out, False)


def _bernoulli(like: Tensor, p: float, generator: Generator | None) -> Tensor:
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    shape, kind, source = like._d.shape, like._dtype(), _source(generator)
    return _sample(lambda: source.bernoulli(shape, kind, p), shape, kind)


def _bernoulli_of(p: Tensor, dtype: np.dtype, generator: Generator | None) -> Tensor:
    shape, kind, source = p._d.shape, p._dtype(), _source(generator)
    if current_interpreter() is None:  # under a trace the probabilities are not known
        array = p._array()
        if not bool(np.all((array >= 0) & (array <= 1))):
            raise RuntimeError(
                "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If "
                "so, please report an enhancement request to PyTorch.)"
            )
    smaller = _sample(lambda: source.uniform(shape, kind), shape, kind) < p.detach()
    return E.cast(smaller, dtype=dtype)


def normal(
    mean: Any,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Normal numbers: `mean` and `std` are numbers and `size` a shape, or one of them is a tensor. As `torch.normal`."""
    tensors = [x for x in (mean, std) if isinstance(x, Tensor)]
    check_device(device)
    source = _source(generator)
    if not tensors:
        shape, kind = _shape("normal", (() if size is None else size,)), _float_dtype(dtype, "normal_kernel_cpu")
        _check_std(std)
        return _made(_sample(lambda: source.normal(shape, kind, mean, std), shape, kind), out, requires_grad)
    shape = np.broadcast_shapes(*(t._d.shape for t in tensors))
    kind = _check_float(tensors[0]._dtype(), "normal_kernel_cpu")
    if not isinstance(std, Tensor):
        _check_std(std)
        result = _sample(lambda: source.normal(shape, kind, 0.0, std), shape, kind) + mean
    else:
        if current_interpreter() is None and bool(np.any(std._array() < 0)):
            raise RuntimeError("normal expects all elements of std >= 0.0")
        result = _sample(lambda: source.normal(shape, kind), shape, kind) * std + mean
    return _made(result.detach(), out, requires_grad)


def _check_std(std: float) -> None:
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def rand_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False, **options: Any) -> Tensor:
    """Uniform numbers in [0, 1) of the shape and dtype of `input`. As `torch.rand_like`."""
    options.pop("memory_format", None)
    return rand(input._d.shape, dtype=dtype or input.dtype, requires_grad=requires_grad, **options)


def randn_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False, **options: Any) -> Tensor:
    """Standard normal numbers of the shape and dtype of `input`. As `torch.randn_like`."""
    options.pop("memory_format", None)
    return randn(input._d.shape, dtype=dtype or input.dtype, requires_grad=requires_grad, **options)


def randint_like(
    input: Tensor, *bounds: int, dtype: Any = None, requires_grad: bool = False, **options: Any
) -> Tensor:
    """Integers in [low, high) of the shape and dtype of `input`. As `torch.randint_like`."""
    options.pop("memory_format", None)
    return randint(*bounds, input._d.shape, dtype=dtype or input.dtype, requires_grad=requires_grad, **options)


# --- in-place methods of Tensor


def uniform_(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with uniform numbers in [from_, to)."""
    check_in_place(self)
    shape, kind, source = self._d.shape, _check_float(self._dtype(), "check_uniform_bounds"), _source(generator)
    if from_ > to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={from_:g} > to={to:g}")
    return assign(self, _sample(lambda: source.uniform(shape, kind, from_, to), shape, kind), "uniform")


def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers."""
    check_in_place(self)
    shape, kind, source = self._d.shape, _check_float(self._dtype(), "normal_kernel_cpu"), _source(generator)
    _check_std(std)
    return assign(self, _sample(lambda: source.normal(shape, kind, mean, std), shape, kind), "normal")


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with ones with probability `p` (a number, or a tensor of this shape), else zeros."""
    check_in_place(self)
    made = _bernoulli_of(p, self._dtype(), generator) if isinstance(p, Tensor) else _bernoulli(self, p, generator)
    return assign(self, made, "bernoulli")


def random_(self: Tensor, from_: int | None = None, to: int | None = None, *, generator: Generator | None = None) -> Tensor:
    """Fill with integers: all that the dtype holds, those below `random_(to)`, or those in [from_, to)."""
    check_in_place(self)
    shape, kind, source = self._d.shape, self._dtype(), _source(generator)
    if from_ is None:
        return assign(self, _sample(lambda: source.any_integers(shape, kind), shape, kind), "random")
    low, high = (0, from_) if to is None else (from_, to)
    _check_range(low, high, kind)
    return assign(self, _sample(lambda: source.integers(shape, kind, low, high), shape, kind), "random")


def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponentially distributed numbers of rate `lambd`."""
    check_in_place(self)
    shape, kind, source = self._d.shape, _check_float(self._dtype(), "exponential_cpu"), _source(generator)
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    return assign(self, _sample(lambda: source.exponential(shape, kind, lambd), shape, kind), "exponential")


for _method in (uniform_, normal_, bernoulli_, random_, exponential_):
    setattr(Tensor, _method.__name__, _method)
