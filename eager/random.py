"""Functions that draw random numbers, and the default generator.

Every function ends in `_sample`. Under a trace it hands the draw itself to the interpreter, so that a compiled program
draws anew at each call, in program order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from eager import draws, dtypes
from eager.devices import check_device
from eager.functional.arguments import converted, fitting, no_overload, shape_of, written
from eager.functional.creation import dtype_or
from eager.generator import Generator
from eager.inplace import assign
from eager.language import E
from eager.limits import finfo
from eager.naming import enclosed
from eager.state import current_interpreter, grad_enabled, sequence
from eager.tensor import Tensor, check_in_place
from graphc.ops.dtypes import BOOL, INT64, default_float, is_floating, is_inexact, real_of
from graphc.ops.rules import broadcast_shapes, c_name, torch_name

C_NAMES = {"Byte": "unsigned char", "Char": "signed char"}
NEEDS_FLOAT = "Only Tensors of floating point and complex dtype can require gradients"
NORMAL = (
    "Tensor mean, Tensor std, *, torch.Generator generator = None, Tensor out = None",
    "Tensor mean, float std = 1, *, torch.Generator generator = None, Tensor out = None",
    "float mean, Tensor std, *, torch.Generator generator = None, Tensor out = None",
    "float mean, float std, tuple of ints size, *, torch.Generator generator = None, Tensor out = None",
)
PERMUTED = {"Half": 2**11 + 1, "Float": 2**24 + 1, "Double": 2**53 + 1}
BAD_PROBABILITY = (
    "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If so, please "
    "report an enhancement request to PyTorch.)"
)

default_generator = Generator.unpredictable()


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


def _sample(draw: Callable[[tuple[int, ...]], np.ndarray], shape: tuple[int, ...], dtype: np.dtype) -> Tensor:
    """The Tensor that `draw(shape)` makes: now, or under a trace at each call of the program."""
    interpreter = current_interpreter()
    if interpreter is None:
        return Tensor._wrap(np.asarray(draw(shape)))
    return interpreter.random(draw, shape, dtype)


def _made(result: Tensor, out: Tensor | None, requires_grad: bool) -> Tensor:
    if out is not None:
        from eager.outputs import store

        store(result, out, warn=False)
        result = out
    return result.requires_grad_(_message=NEEDS_FLOAT) if requires_grad else result


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


def _float_dtype(dtype: Any, kernel: str, out: Tensor | None = None) -> np.dtype:
    return _check_float(dtype_or(dtype, default_float(), out=out), kernel)


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
    shape, kind, source = _shape("rand", size), _float_dtype(dtype, "check_uniform_bounds", out), _source(generator)
    check_device(device)
    return _made(_sample(lambda shape: source.uniform(shape, kind), shape, kind), out, requires_grad)


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
    shape, kind, source = _shape("randn", size), _float_dtype(dtype, "normal_kernel_cpu", out), _source(generator)
    check_device(device)
    return _made(_sample(lambda shape: source.normal(shape, kind), shape, kind), out, requires_grad)


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
        raise no_overload(
            "randint", bounds_and_size, ("int high, tuple of ints size, *", "int low, int high, tuple of ints size, *")
        )
    position = max(len(bounds_and_size) - 1, 1)
    low, high = _integer("randint", "low", 1, low), _integer("randint", "high", position, high)
    shape, kind, source = (
        _shape("randint", (size,)),
        dtype_or(dtype, INT64, out=out),
        _source(generator),
    )
    check_device(device)
    _check_range(low, high, kind)
    return _made(_sample(lambda shape: source.integers(shape, kind, low, high), shape, kind), out, requires_grad)


def _check_range(low: int, high: int, dtype: np.dtype) -> None:
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


def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A random permutation of the integers 0 to n - 1, of shape (n,). As `torch.randperm`."""
    n = _integer("randperm", "n", 1, n)
    shape, kind, source = _shape("randperm", (n,)), dtype_or(dtype, INT64, out=out), _source(generator)
    check_device(device)
    if (most := PERMUTED.get(torch_name(kind))) is not None and n > most:
        raise RuntimeError(f"n cannot be greater than {most} for {torch_name(kind)} type.")
    if kind.kind in "iu":
        fitting(n, kind)

    def permuted(shape: tuple[int, ...]) -> np.ndarray:
        rows = [source.permutation(n, kind) for _ in range(math.prod(shape[:-1]))]
        return np.asarray(rows, kind).reshape(shape)

    return _made(_sample(permuted, shape, kind), out, requires_grad)


def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Zeros and ones of the shape and dtype of `input`, which holds the probabilities unless `p` is given.

    Raises RuntimeError for a probability outside [0, 1], NotImplementedError for an integer `input`.
    """
    if out is not None:
        return written(out, "bernoulli", bernoulli, input, p, generator=generator)
    shape_of(input, "bernoulli")
    if p is not None:
        drawn = _bernoulli(input, p, generator)
    else:
        _check_float(input._dtype(), "bernoulli_tensor_cpu_p_")
        drawn = _bernoulli_of(input, input._dtype(), generator)
    since = next(sequence)
    return enclosed(_underived(drawn, input), "BernoulliBackward0", since)


def _underived(drawn: Tensor, *parameters: Tensor) -> Tensor:
    """`drawn`, from which gradients of zeros flow to the parameters of its distribution."""
    for x in parameters:
        if x._n is not None and grad_enabled():
            everywhere = E.full(shape=tuple(drawn._d.shape), value=True, dtype=BOOL)
            drawn = E.where(everywhere, drawn, converted(x, drawn._dtype()))
    return drawn


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")


def _bernoulli(like: Tensor, p: float, generator: Generator | None) -> Tensor:
    _check_probability(p)
    shape, kind, source = like._d.shape, like._dtype(), _source(generator)
    return _sample(lambda shape: source.bernoulli(shape, kind, p), shape, kind)


def _bernoulli_of(p: Tensor, dtype: np.dtype, generator: Generator | None) -> Tensor:
    shape, kind, source = p._d.shape, p._dtype(), _source(generator)
    if current_interpreter() is None:  # under a trace the probabilities are not known
        array = p._array()
        if not bool(np.all((array >= 0) & (array <= 1))):
            raise RuntimeError(BAD_PROBABILITY)
    smaller = _sample(lambda shape: source.uniform(shape, kind), shape, kind) < p.detach()
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
    """Normal numbers: `mean` and `std` are numbers and `size` a shape, or tensors. As `torch.normal`."""
    tensors = [x for x in (mean, std) if isinstance(x, Tensor)]
    check_device(device)
    source = _source(generator)
    if tensors and out is not None:
        return written(out, "normal", normal, mean, std, generator=generator)
    if not tensors:
        if size is None:
            raise no_overload("normal", (mean, std), NORMAL)
        shape, kind = _shape("normal", (size,)), _float_dtype(dtype, "normal_kernel_cpu", out)
        _check_std(std)
        return _made(_sample(lambda shape: source.normal(shape, kind, mean, std), shape, kind), out, requires_grad)
    since = next(sequence)
    shape = broadcast_shapes([tuple(t._d.shape) for t in tensors])
    kind = tensors[0]._dtype()
    if not isinstance(std, Tensor):
        _check_std(std)
        _check_float(kind, "normal_kernel_cpu")
        result = E.add(_sample(lambda shape: source.normal(shape, kind, 0.0, std), shape, kind), mean)
    else:
        if std._dtype().kind == "c":
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if current_interpreter() is None and bool(np.any(std._array() < 0)):
            raise RuntimeError("normal expects all elements of std >= 0.0")
        _check_float(kind, "normal_kernel_cpu")
        result = E.add(E.mul(_sample(lambda shape: source.normal(shape, kind), shape, kind), std), mean)
    result = converted(result.detach(), kind)
    node = 3 if len(tensors) == 2 else 1 if isinstance(mean, Tensor) else 2
    return enclosed(_underived(result, *tensors), f"NormalBackward{node}", since)


def _check_std(std: float) -> None:
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Indices drawn with probabilities in proportion to the last dim of `input`. As `torch.multinomial`.

    input: (n,) or (m, n), floating; returns (num_samples,) or (m, num_samples), int64. Raises RuntimeError for any
    other shape or dtype, for a negative, infinite or nan entry, for a sum of zero, and for more samples than entries
    without `replacement`.
    """
    from eager.weighted_draws import draw

    if out is not None:
        return written(out, "multinomial", multinomial, input, num_samples, replacement, generator=generator)
    num_samples = _integer("multinomial", "num_samples", 2, num_samples)
    return draw(input, num_samples, replacement, _source(generator))


def _like(
    input: Tensor, name: str, bounds: tuple[int, ...], dtype: Any, requires_grad: bool, options: dict[str, Any]
) -> Tensor:
    """`rand`, ... for the shape and dtype of `input`; elements take the numbers in the order of input's memory."""
    options.pop("memory_format", None)
    function, fill = LIKE[name]
    order, dtype = _memory_order(input), dtype or input.dtype
    if order is None:
        return function(*bounds, tuple(input._d.shape), dtype=dtype, requires_grad=requires_grad, **options)
    stored = tuple(input._d.shape[axis] for axis in order)
    made = Tensor._wrap(np.empty(stored, dtypes.to_numpy(dtype)).transpose(np.argsort(order)))
    fill(made, *bounds, generator=options.get("generator"))
    return _made(made, None, requires_grad)


def rand_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False, **options: Any) -> Tensor:
    """Uniform numbers in [0, 1) of the shape and dtype of `input`. As `torch.rand_like`."""
    return _like(input, "rand", (), dtype, requires_grad, options)


def randn_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False, **options: Any) -> Tensor:
    """Standard normal numbers of the shape and dtype of `input`. As `torch.randn_like`."""
    return _like(input, "randn", (), dtype, requires_grad, options)


def randint_like(input: Tensor, *bounds: int, dtype: Any = None, requires_grad: bool = False, **options: Any) -> Tensor:
    """Integers in [low, high) of the shape and dtype of `input`. As `torch.randint_like`."""
    limits = tuple(options.pop(name) for name in ("low", "high") if name in options)
    return _like(input, "randint", bounds + limits, dtype, requires_grad, options)


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson numbers with the rates in `input`. As `torch.poisson`. RuntimeError for a negative rate. Eager only."""
    dtype = input._dtype()
    if not is_floating(dtype):
        raise NotImplementedError(f"\"poisson_cpu\" not implemented for '{torch_name(dtype)}'")
    rates = input._array()
    if not np.all(rates >= 0):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return Tensor._wrap(draws.poisson(_source(generator), rates))


# --- in place


def _fill(self: Tensor, name: str, draw: Callable[[tuple[int, ...]], np.ndarray]) -> Tensor:
    """Write `draw(shape)` to `self`, whose elements take the numbers in the order they have in memory."""
    shape, dtype = tuple(self._d.shape), self._dtype()
    order = _memory_order(self)
    if order is None:
        made = _sample(lambda shape: draw(shape).astype(dtype, copy=False), shape, dtype)
    else:
        stored = tuple(shape[axis] for axis in order)
        back = tuple(np.argsort(order))
        made = _sample(lambda _: draw(stored).astype(dtype, copy=False).transpose(back), shape, dtype)
    return assign(self, made, name)


def _memory_order(t: Tensor) -> tuple[int, ...] | None:
    """The dims of `t` from the longest step in memory to the shortest; None if they are in order."""
    array = t._d
    if not isinstance(array, np.ndarray) or array.flags.c_contiguous:
        return None
    order = tuple(sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis])))
    return None if order == tuple(range(array.ndim)) else order


def _contiguous(t: Tensor) -> bool:
    return not isinstance(t._d, np.ndarray) or t._d.flags.c_contiguous


def _check_uniform(dtype: np.dtype, low: float, high: float) -> None:
    """Raise PyTorch's RuntimeError for bounds that `dtype` does not hold, or that lie too far apart in it."""
    limits = finfo(dtypes.BY_NUMPY[real_of(dtype)])
    for name, bound in (("from", low), ("to", high)):
        if not limits.min <= bound <= limits.max:
            raise RuntimeError(f"{name} is out of bounds for {c_name(real_of(dtype))}")
    if high - low > limits.max:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{torch_name(dtype)}>::max(), but found to={high:g} and "
            f"from={low:g} which result in to-from to exceed the limit"
        )


def uniform_(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with uniform numbers in [from_, to)."""
    check_in_place(self)
    kind, source = _check_float(self._dtype(), "check_uniform_bounds"), _source(generator)
    if from_ > to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={from_:g} > to={to:g}")
    _check_uniform(kind, from_, to)
    return _fill(self, "uniform", lambda shape: source.uniform(shape, kind, from_, to))


def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers."""
    check_in_place(self)
    kind, source = _check_float(self._dtype(), "normal_kernel_cpu"), _source(generator)
    _check_std(std)
    if _contiguous(self) or kind.kind == "c":
        return _fill(self, "normal", lambda shape: source.normal(shape, kind, mean, std))
    return _fill(self, "normal", lambda shape: source.normals_one_by_one(shape, mean, std))


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with ones with probability `p` (a number, or a tensor that broadcasts to this shape), else zeros."""
    check_in_place(self)
    if not isinstance(p, Tensor):
        _check_probability(p)
        kind, source = self._dtype(), _source(generator)
        return _fill(self, "bernoulli", lambda shape: source.bernoulli(shape, kind, p))
    if p._d.shape != self._d.shape:
        p = E.broadcast_to(p, shape=tuple(self._d.shape))
    return assign(self, _bernoulli_of(p, self._dtype(), generator), "bernoulli")


def random_(
    self: Tensor, from_: int | None = None, to: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Fill with integers: all that the dtype holds, those below `random_(to)`, or those in [from_, to)."""
    check_in_place(self)
    kind, source = self._dtype(), _source(generator)
    if from_ is None:
        return _fill(self, "random", lambda shape: source.any_integers(shape, kind))
    low, high = (0, from_) if to is None else (from_, to)
    _check_range(low, high, kind)
    return _fill(self, "random", lambda shape: source.integers(shape, kind, low, high))


def _check_continuous(self: Tensor, name: str) -> None:
    check_in_place(self)
    if not is_floating(self._dtype()):
        shown = _long_name(self) if name == "Cauchy" else torch_name(self._dtype())
        raise RuntimeError(
            f"{name} distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {shown}"
        )


def _long_name(t: Tensor) -> str:
    name = C_NAMES.get(torch_name(t._dtype()), torch_name(t._dtype()).lower())
    return f"{name} int" if name in ("long", "short") else name


def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponentially distributed numbers of rate `lambd`."""
    _check_continuous(self, "Exponential")
    kind, source = self._dtype(), _source(generator)
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    return _fill(self, "exponential", lambda shape: source.exponential(shape, kind, lambd))


def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the Cauchy distribution."""
    _check_continuous(self, "Cauchy")
    source = _source(generator)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    return _fill(self, "cauchy", lambda shape: draws.cauchy(source, shape, median, sigma))


def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers whose logarithm is normal with this mean and deviation."""
    check_in_place(self)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    _check_float(self._dtype(), "log_normal_cpu")
    source = _source(generator)
    return _fill(self, "log_normal", lambda shape: draws.log_normal(source, shape, mean, std))


def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the number of trials that the first success of probability `p` takes."""
    check_in_place(self)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    source = _source(generator)
    return _fill(self, "geometric", lambda shape: draws.geometric(source, shape, p))


LIKE = {"rand": (rand, uniform_), "randn": (randn, normal_), "randint": (randint, random_)}
IN_PLACE = (
    uniform_, normal_, bernoulli_, random_, exponential_, cauchy_, log_normal_, geometric_,
)  # fmt: skip
for _method in IN_PLACE:
    setattr(Tensor, _method.__name__, _method)
