"""`Generator`: a stream of random words, and the numbers that PyTorch makes of them on the CPU.

The words are those of MT19937. Uniform numbers, integers, permutations, Bernoulli samples and fewer than 16 normal
numbers are PyTorch's bit for bit; longer normal draws agree to the last bits of sin, cos and log.
"""

from __future__ import annotations

import ctypes
import math
import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, final

import numpy as np

from eager.core.devices import CPU, check_device, device
from eager.core.interpreter import current_interpreter
from eager.core.shown import Shown, ShownObject
from eager.core.tensor import Tensor
from eager.rng.fused import fused
from eager.rng.threefry import Threefry
from graphc.errors import CaptureError
from graphc.ops.dtypes import BOOL, FLOAT32, FLOAT64, INT64, UINT8, complex_of, is_half

DEFAULT_SEED = 67280421310721
WORDS = 624  # of the state of MT19937
WORDS_SIZE = 4 * WORDS + 4  # bytes that NumPy keeps: the words, and how many of them have been taken
MANTISSA = {"e": 11, "E": 8, "f": 24, "d": 53}  # bits of precision, by the dtype's character
# From here on PyTorch draws 64 bits, so that `% range` stays nearly uniform.
WIDE_RANGE = 2**28
BLOCK = 16  # normal numbers are made 16 at a time, if there are as many
MANY = 2**10  # numbers to permute, from which LAPACK pays

DRAWN_WHILE_RUNNING = (
    "numbers of this distribution are drawn while a program runs, and the generator of a device cannot do that.\n"
    "Remedy: draw them outside the compiled function, or on the CPU."
)
_DEVICE_STATE = np.dtype([("seed", "<u8"), ("draws", "<u8")])
STATE = np.dtype(
    [
        ("seed", "<u8"), ("left", "<i4"), ("seeded", "<i4"), ("next", "<u8"), ("words", "<u8", WORDS),
        ("normal_x", "<f8"), ("normal_y", "<f8"), ("normal_rho", "<f8"), ("has_normal", "<i4"), ("", "V4"),
        ("next_float", "<f4"), ("has_float", "?"), ("", "V3"),
    ]
)  # fmt: skip
SEEDED = STATE.fields["seeded"][1]  # type: ignore[index]  # where a state has a byte that is not 0
SEEDING_IS_NOT_CAPTURED = (
    "{what} cannot be captured in a graph: it would happen once, while tracing, and not at each call.\n"
    "Remedy: call it outside the compiled function."
)


class Generator(ShownObject, metaclass=Shown):
    """A stream of random numbers. As `torch.Generator`: on the CPU, or of the numbers for a `device`."""

    def __new__(cls, device: Any = "cpu") -> Generator:
        """A generator; one of `DeviceGenerator` for another device than the CPU."""
        kind = cls if check_device(device) is CPU else DeviceGenerator
        return object.__new__(kind)

    def __init__(self, device: Any = "cpu"):
        self._next_normal: float | None = None
        self._left: Tensor | None = None
        self._start(DEFAULT_SEED)
        self._do(lambda: self._start(DEFAULT_SEED))  # another one at each call

    @classmethod
    def unpredictable(cls) -> Generator:
        """A generator with a seed that the operating system draws."""
        made = cls()
        made._start(_system_seed())
        return made

    @classmethod
    def of_state(cls, state: np.ndarray) -> Generator:
        """A generator that continues from the array of a state."""
        made = object.__new__(cls)
        made._next_normal, made._left, made._words, made._seed = None, None, None, 0
        made._continue(state)
        return made

    def _start(self, seed: int) -> None:
        self._forget_left()
        self._seed = seed
        self._words: Any = None
        self._next_normal = None

    def _stream(self) -> Any:
        """The MT19937 bit generator, made at the first draw: importing numpy.random takes longer than this module."""
        if self._left is not None:
            self._take_left()
        words = self._words
        if words is None:
            words = self._words = np.random.MT19937()
            words._legacy_seeding(self._seed & 0xFFFFFFFF)
        return words

    def left(self) -> Tensor:
        """A state, as `get_state` has it, that a compiled program writes: from there on this generator continues.

        A program that draws numbers while it runs does so from a state of its own.
        """
        if self._left is None:
            self._left = Tensor._wrap(np.zeros(STATE.itemsize, UINT8))
            _LEFT[id(self._left)] = self._left
        return self._left

    def _take_left(self) -> None:
        assert self._left is not None
        state = self._left._array()
        if state[SEEDED]:
            self._forget_left()
            self._continue(state)

    def _forget_left(self) -> None:
        if self._left is not None:
            self._left._d = np.zeros(STATE.itemsize, UINT8)

    @property
    def device(self) -> device:
        return CPU

    def manual_seed(self, seed: int) -> Generator:
        """Restart the stream from `seed` (64 bits; negative numbers count from 2**64). Returns the generator.

        Raises RuntimeError if `seed` is no integer, ValueError if it does not fit.
        """
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        seed = seed.__index__()
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long")
        self._do(lambda: self._start(seed % 2**64))
        return self

    def seed(self) -> int:
        """Restart the stream from a seed that the operating system draws, and return it."""
        _refuse_capture("seed()")
        self._start(_system_seed())
        return self._seed

    def initial_seed(self) -> int:
        """The seed from which the stream was last started."""
        self._stream()
        return self._seed

    def get_state(self) -> Tensor:
        """The state as a uint8 tensor of 5056 bytes, in PyTorch's layout."""
        return current_interpreter().random(lambda shape: self._state(), (STATE.itemsize,), UINT8, self)

    def _state(self) -> np.ndarray:
        words, position = self._stream().state["state"].values()
        state = np.zeros((), STATE)
        state["seed"], state["seeded"] = self._seed, 1
        untouched = position == WORDS and words[0] == self._seed & 0xFFFFFFFF
        state["words"], state["next"], state["left"] = words, 0 if untouched else position, WORDS + 1 - position
        if self._next_normal is not None:
            state["normal_y"], state["has_normal"] = self._next_normal, 1
        return np.frombuffer(state.tobytes(), UINT8).copy()

    def set_state(self, new_state: Tensor) -> Generator:
        """Continue from a state that `get_state` returned. Raises TypeError or RuntimeError for anything else."""
        if not isinstance(new_state, Tensor) or new_state._dtype() != UINT8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if not current_interpreter().immediate and not isinstance(new_state._d, np.ndarray):
            raise CaptureError(SEEDING_IS_NOT_CAPTURED.format(what="set_state() with a state of this very call"))
        self._do(lambda: self._continue(new_state._array()))
        return self

    def _continue(self, array: np.ndarray) -> None:
        if array.size != STATE.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE.itemsize} but found the input RNG state size to be "
                f"{array.size}"
            )
        state = np.frombuffer(array.tobytes(), STATE)[0]
        position = WORDS + 1 - int(state["left"])  # of the next word; 624: there is none
        fresh = position == WORDS and state["next"] == 0
        if not state["seeded"] or not 0 <= position <= WORDS or not (fresh or state["next"] == position):
            raise RuntimeError("Invalid mt19937 state")
        self._seed = int(state["seed"])
        words = {"key": state["words"].astype(np.uint32), "pos": position}
        self._stream().state = {"bit_generator": "MT19937", "state": words}
        self._next_normal = float(state["normal_y"]) if state["has_normal"] else None

    @contextmanager
    def forked(self) -> Iterator[None]:
        """A context at whose end the generator continues as before."""
        kept: list[np.ndarray] = []
        self._do(lambda: kept.append(self._state()))
        try:
            yield
        finally:
            self._do(lambda: self._continue(kept.pop()))

    def mark(self) -> tuple[Any, ...]:
        """Where the stream is, for `rewind`: 100 times faster than `get_state`."""
        if self._left is not None:
            self._take_left()
        words = self._words
        kept = None if words is None else ctypes.string_at(words.ctypes.state_address, WORDS_SIZE)
        return self._seed, words, kept, self._next_normal

    def rewind(self, mark: tuple[Any, ...]) -> None:
        """Go back to where `mark` was made."""
        self._forget_left()
        self._seed, self._words, kept, self._next_normal = mark
        if kept is not None:
            ctypes.memmove(self._words.ctypes.state_address, kept, WORDS_SIZE)

    def _do(self, action: Callable[[], Any]) -> None:
        """Change the state: now, or under a trace at each call of the program."""
        current_interpreter().at_each_call(action, self)

    def clone_state(self) -> Generator:
        """A new generator that will draw the same numbers."""
        return Generator(self.device).set_state(self.get_state())

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Take what PyTorch pickles: (seed, offset, state)."""
        self.set_state(state[2])

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.get_state(), str(self.device))

    def bits(self, count: int, wide: bool = False) -> np.ndarray:
        """`count` random words as uint64: of 64 bits if `wide`, else of 32."""
        draw = self._stream().random_raw
        if not wide:
            return draw(count)
        pairs = draw(2 * count)
        return pairs[0::2] << np.uint64(32) | pairs[1::2]

    def uniform(self, shape: tuple[int, ...], dtype: np.dtype, low: float = 0.0, high: float = 1.0) -> np.ndarray:
        """Numbers in [low, high); complex numbers have both parts there."""
        if dtype.kind == "c":
            return self.uniform((*shape, 2), _part(dtype), low, high).view(dtype)[..., 0]
        count = math.prod(shape)
        if dtype == FLOAT64:
            unit = (self.bits(count, wide=True) & np.uint64(2**53 - 1)) * 2.0**-53
        else:
            words = self.bits(count)
            words &= np.uint64(2**24 - 1)
            unit = words.view(np.int64).astype(FLOAT32)
            unit *= np.float32(2.0**-24)
        if (low, high) != (0, 1):
            kind = unit.dtype.type
            unit = fused(unit, kind(high) - kind(low), kind(low))
        result = unit.astype(dtype, copy=False).reshape(shape)
        if is_half(dtype) or (low, high) != (0, 1):
            result[result == dtype.type(high)] = low  # what has been rounded up to the end, as in PyTorch
        return result

    def normal(self, shape: tuple[int, ...], dtype: np.dtype, mean: float = 0.0, std: float = 1.0) -> np.ndarray:
        """Normal numbers by the Box-Muller transform; for a complex dtype `std` is that of the complex number."""
        if dtype.kind == "c":
            return self.normal((*shape, 2), _part(dtype), mean, std / math.sqrt(2)).view(dtype)[..., 0]
        count = math.prod(shape)
        if count < BLOCK:
            return self.normals_one_by_one(shape, mean, std).astype(dtype)
        kind = FLOAT64 if dtype == FLOAT64 else FLOAT32
        whole = count - count % BLOCK
        if dtype.itemsize >= 4:
            values = self.uniform((count,), kind)
        else:  # made in float32, block by block
            values = np.empty(count, kind)
            values[:whole] = self.uniform((whole,), kind)
        _box_muller(values[:whole], mean, std)
        if whole < count:  # PyTorch draws the last block anew, overwriting part of the one before
            last = self.uniform((BLOCK,), kind)
            _box_muller(last, mean, std)
            values[-BLOCK:] = last
        return values.astype(dtype, copy=False).reshape(shape)

    def normals_one_by_one(self, shape: tuple[int, ...], mean: float, std: float) -> np.ndarray:
        """Normal numbers in float64, as PyTorch draws few of them, and those for scattered memory."""
        values = [self._one_normal() * std + mean for _ in range(math.prod(shape))]
        return np.array(values, FLOAT64).reshape(shape)

    def _one_normal(self) -> float:
        if self._left is not None:
            self._take_left()
        if self._next_normal is not None:
            value, self._next_normal = self._next_normal, None
            return value
        angle, squared = (self.bits(2, wide=True) & np.uint64(2**53 - 1)) * 2.0**-53
        radius = math.sqrt(-2.0 * math.log1p(-squared))
        angle = 2.0 * math.pi * angle
        self._next_normal = radius * math.sin(angle)
        return radius * math.cos(angle)

    def integers(self, shape: tuple[int, ...], dtype: np.dtype, low: int, high: int) -> np.ndarray:
        """Integers in [low, high), in any dtype; bounds that a floating `dtype` rounds outward are drawn in first."""
        if dtype.char in MANTISSA:
            low, high = _held(low, high, dtype)
        words = self.bits(math.prod(shape), wide=high - low >= WIDE_RANGE)
        if high - low < 2**64:
            words %= np.uint64(high - low)
        return (words.view(np.int64) + np.int64(low)).astype(dtype).reshape(shape)

    def any_integers(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Integers over the non-negative numbers that `dtype` holds exactly."""
        if dtype.char in MANTISSA:
            end = 2 ** MANTISSA[dtype.char] + 1
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
        offsets = self.bits(max(n - 1, 0)) % np.arange(n, min(n, 1), -1, dtype=np.uint64)
        if MANY <= n < 2**31:
            return _interchanged(offsets, n).astype(dtype)
        order = list(range(n))
        for i, offset in enumerate(offsets.tolist()):
            j = i + offset
            order[i], order[j] = order[j], order[i]
        return np.array(order, dtype)


def _interchanged(offsets: np.ndarray, n: int) -> np.ndarray:
    """The numbers 0 to n - 1 after the interchanges of place i with place i + offsets[i], by LAPACK's loop for rows."""
    from scipy.linalg.lapack import dlaswp  # here: it takes longer to import than all of this package

    pivots = np.arange(n, dtype=np.int32)
    pivots[:-1] += offsets.astype(np.int32)
    return dlaswp(np.arange(n, dtype=FLOAT64)[:, None], pivots)[:, 0]


_LEFT: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()


def is_left(tensor: Tensor) -> bool:
    """Whether `tensor` is the `left()` of some generator, which only programs write."""
    return _LEFT.get(id(tensor)) is tensor


def _restore(state: Tensor, where: str = "cpu") -> Generator:
    return Generator(where).set_state(state)


@final
class DeviceGenerator(Generator):
    """The random numbers of a device: those of `eager.rng.threefry`, made on the host and put there.

    A state has 16 bytes, as that of a CUDA generator: the seed, and how many draws there have been.
    """

    def __init__(self, device: Any = "cpu"):
        self._device = check_device(device)
        self._start(DEFAULT_SEED)
        self._do(lambda: self._start(DEFAULT_SEED))

    @classmethod
    def of_seed(cls, where: device, seed: int) -> DeviceGenerator:
        """The generator of a device, seeded once: also under a trace, which it is no part of."""
        made = object.__new__(cls)
        made._device = where
        made._start(seed)
        return made

    @property
    def device(self) -> device:
        return self._device

    def _start(self, seed: int) -> None:
        self._stream_of_words = Threefry(seed)

    def initial_seed(self) -> int:
        return self._stream_of_words.seed

    def seed(self) -> int:
        super().seed()
        return self.initial_seed()

    def bits(self, count: int, wide: bool = False) -> np.ndarray:
        return self._stream_of_words.words(count, wide)

    def get_state(self) -> Tensor:
        return current_interpreter().random(lambda shape: self._state(), (_DEVICE_STATE.itemsize,), UINT8, self)

    def _state(self) -> np.ndarray:
        return np.frombuffer(np.array(self.mark(), _DEVICE_STATE).tobytes(), UINT8).copy()

    def _continue(self, array: np.ndarray) -> None:
        if array.size != _DEVICE_STATE.itemsize:
            raise RuntimeError("RNG state is wrong size")
        self.rewind(tuple(np.frombuffer(array.tobytes(), _DEVICE_STATE)[0].tolist()))

    def mark(self) -> tuple[Any, ...]:
        return self._stream_of_words.seed, self._stream_of_words.draws

    def rewind(self, mark: tuple[Any, ...]) -> None:
        self._stream_of_words = Threefry(*mark)

    def left(self) -> NoReturn:
        raise CaptureError(DRAWN_WHILE_RUNNING)

    def normal(self, shape: tuple[int, ...], dtype: np.dtype, mean: float = 0.0, std: float = 1.0) -> np.ndarray:
        if dtype.kind == "c":
            return super().normal(shape, dtype, mean, std)
        count = math.prod(shape)
        values = self.uniform((-(-count // BLOCK) * BLOCK,), FLOAT64 if dtype == FLOAT64 else FLOAT32)
        _box_muller(values, mean, std)
        return values[:count].astype(dtype).reshape(shape)

    def normals_one_by_one(self, shape: tuple[int, ...], mean: float, std: float) -> np.ndarray:
        return self.normal(shape, FLOAT64, mean, std)


def _part(dtype: np.dtype) -> np.dtype:
    return FLOAT64 if dtype == complex_of(FLOAT64) else FLOAT32


def _box_muller(values: np.ndarray, mean: float, std: float) -> None:
    """Turn uniform numbers into normal ones, in place: of each block of 16, 8 give radii and 8 angles."""
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


def _held(low: int, high: int, dtype: np.dtype) -> tuple[int, int]:
    """The bounds as PyTorch moves them so that no number in [low, high) rounds to one outside."""
    digits = MANTISSA[dtype.char]
    if (rounded := int(dtype.type(low + 1))) < low:
        low = rounded + _step_at(low + 1, digits)
    if (rounded := int(dtype.type(high - 1))) >= high:
        high = rounded - _step_at(high - 1, digits)
    return low, high


def _step_at(n: int, digits: int) -> int:
    """How far apart the numbers of `digits` bits are at `n`."""
    return 1 << max(abs(n).bit_length() - digits, 0)


def _system_seed() -> int:
    """64 bits that the operating system draws."""
    return int.from_bytes(os.urandom(8), "little")


def _refuse_capture(what: str) -> None:
    if not current_interpreter().immediate:
        raise CaptureError(SEEDING_IS_NOT_CAPTURED.format(what=what))
