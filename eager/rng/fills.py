"""Random numbers written into a tensor, or of the shape of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core import dtypes
from eager.core.devices import check_device
from eager.core.layouts import memory_order
from eager.core.limits import finfo
from eager.core.placed import is_placed
from eager.core.sparse import is_sparse, not_implemented
from eager.core.tensor import Tensor, check_in_place
from eager.engine.crossing import transferred
from eager.engine.inplace import assign
from eager.engine.language import E
from eager.engine.overlap import check_partial
from eager.rng import distributions
from eager.rng.functions import rand, randint, randn
from eager.rng.generator import Generator
from eager.rng.sampling import (
    C_NAMES,
    bernoulli_of,
    check_float,
    check_probability,
    check_range,
    check_std,
    finished,
    sample_like,
    source_of,
)
from graphc.ops.dtypes import is_floating, real_of
from graphc.ops.rules import c_name, torch_name


def _fill(self: Tensor, name: str, source: Generator, draw: Callable[[tuple[int, ...]], np.ndarray]) -> Tensor:
    """Write `draw(shape)`, from `source`, to `self`, whose elements take the numbers in their order in memory."""
    dtype = self._dtype()
    return assign(self, sample_like(lambda shape: draw(shape).astype(dtype, copy=False), self, dtype, source), name)


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
    kind, source = check_float(self._dtype(), "check_uniform_bounds"), source_of(generator, self)
    if from_ > to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={from_:g} > to={to:g}")
    _check_uniform(kind, from_, to)
    return _fill(self, "uniform", source, lambda shape: source.uniform(shape, kind, from_, to))


def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers."""
    check_in_place(self)
    check_float(self._dtype(), "normal_kernel_cpu")
    check_std(std)
    source = source_of(generator, self)
    return _fill(self, "normal", source, normals_for(self, source, mean, std))


def normals_for(like: Tensor, source: Generator, mean: float, std: float) -> Callable[[tuple[int, ...]], np.ndarray]:
    """What draws normal numbers as `normal_` does for the memory of `like`."""
    kind = check_float(like._dtype(), "normal_kernel_cpu")
    if _contiguous(like) or kind.kind == "c":
        return lambda shape: source.normal(shape, kind, mean, std)
    return lambda shape: source.normals_one_by_one(shape, mean, std)


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with ones with probability `p` (a number, or a tensor that broadcasts to this shape), else zeros."""
    check_in_place(self)
    if not isinstance(p, Tensor):
        check_probability(p)
        kind, source = self._dtype(), source_of(generator, self)
        return _fill(self, "bernoulli", source, lambda shape: source.bernoulli(shape, kind, p))
    if p._d.shape != self._d.shape:
        p = E.broadcast_to(p, shape=tuple(self._d.shape))
    check_partial(self, (p,))
    return assign(self, bernoulli_of(p, generator, into=self), "bernoulli")


def random_(
    self: Tensor, from_: int | None = None, to: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Fill with integers: all that the dtype holds, those below `random_(to)`, or those in [from_, to)."""
    check_in_place(self)
    kind, source = self._dtype(), source_of(generator, self)
    if from_ is None:
        return _fill(self, "random", source, lambda shape: source.any_integers(shape, kind))
    low, high = (0, from_) if to is None else (from_, to)
    check_range(low, high, kind)
    return _fill(self, "random", source, lambda shape: source.integers(shape, kind, low, high))


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
    kind, source = self._dtype(), source_of(generator, self)
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    return _fill(self, "exponential", source, lambda shape: source.exponential(shape, kind, lambd))


def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the Cauchy distribution."""
    _check_continuous(self, "Cauchy")
    source = source_of(generator, self)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    return _fill(self, "cauchy", source, lambda shape: distributions.cauchy(source, shape, median, sigma))


def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers whose logarithm is normal with this mean and deviation."""
    check_in_place(self)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    check_float(self._dtype(), "log_normal_cpu")
    source = source_of(generator, self)
    return _fill(self, "log_normal", source, lambda shape: distributions.log_normal(source, shape, mean, std))


def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the number of trials that the first success of probability `p` takes."""
    check_in_place(self)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    source = source_of(generator, self)
    return _fill(self, "geometric", source, lambda shape: distributions.geometric(source, shape, p))


def _like(
    input: Tensor, name: str, bounds: tuple[int, ...], dtype: Any, requires_grad: bool, options: dict[str, Any]
) -> Tensor:
    """`rand`, ... for the shape and dtype of `input`; elements take the numbers in the order of input's memory."""
    options.pop("memory_format", None)
    if options.get("device") is None:
        options["device"] = input.device
    function, fill = LIKE[name]
    if is_sparse(input):
        raise not_implemented(fill.__name__, input._d)
    order, dtype = memory_order(input), dtype or input.dtype
    if order is None:
        made = function(*bounds, tuple(input._d.shape), dtype=dtype, requires_grad=requires_grad, **options)
        return input._d.spread(made) if is_placed(input) else made
    stored = tuple(input._d.shape[axis] for axis in order)
    made = Tensor._wrap(np.empty(stored, dtypes.to_numpy(dtype)).transpose(np.argsort(order)))
    made = transferred(made, check_device(options["device"]))
    fill(made, *bounds, generator=options.get("generator"))
    return finished(made, None, requires_grad)


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


LIKE = {"rand": (rand, uniform_), "randn": (randn, normal_), "randint": (randint, random_)}
