"""Functions that draw random numbers: `torch.rand` and its like."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from eager.core.interpreter import on_arrays
from eager.core.state import grad_enabled, sequence
from eager.core.tensor import Tensor
from eager.engine.conversion import converted
from eager.engine.language import E
from eager.engine.node_names import enclosed
from eager.functional.arguments import fitting, shape_of
from eager.functional.creation import dtype_or
from eager.functional.outputs import into
from eager.functional.parsing import no_overload
from eager.rng.generator import Generator
from eager.rng.rejection import check_real_floating, rejected
from eager.rng.sampling import (
    asked_shape,
    bernoulli_of,
    bernoulli_with,
    check_float,
    check_range,
    check_std,
    finished,
    float_dtype,
    integer_argument,
    sample,
    source_of,
)
from graphc.ops import dims
from graphc.ops.dtypes import BOOL, INT64
from graphc.ops.rules import broadcast_shapes, torch_name

PERMUTED = {"Half": 2**11 + 1, "Float": 2**24 + 1, "Double": 2**53 + 1}


def rand(
    *sizes: Any, size: Any = None, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Uniform numbers in [0, 1), of shape `size`. As `torch.rand`."""
    shape = asked_shape("rand", sizes if size is None else (size,))
    kind = float_dtype(dtype, "check_uniform_bounds", out)
    source = source_of(generator, device)
    return finished(
        sample(lambda shape: source.uniform(shape, kind), shape, kind, source, device=device), out, requires_grad
    )


def randn(
    *sizes: Any, size: Any = None, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Standard normal numbers, of shape `size`. As `torch.randn`."""
    shape, kind = asked_shape("randn", sizes if size is None else (size,)), float_dtype(dtype, "normal_kernel_cpu", out)
    source = source_of(generator, device)
    return finished(
        sample(lambda shape: source.normal(shape, kind), shape, kind, source, device=device), out, requires_grad
    )


def randint(*bounds_and_size: Any, low: int = 0, high: int | None = None, size: Sequence[int] | None = None,
            generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
            device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
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
        raise no_overload("randint", bounds_and_size)
    position = max(len(bounds_and_size) - 1, 1)
    low, high = integer_argument("randint", "low", 1, low), integer_argument("randint", "high", position, high)
    shape, kind, source = asked_shape("randint", (size,)), dtype_or(dtype, INT64, out=out), source_of(generator, device)
    check_range(low, high, kind)
    draw = lambda shape: source.integers(shape, kind, low, high)
    return finished(sample(draw, shape, kind, source, device=device), out, requires_grad)


def randperm(
    n: int, *, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A random permutation of the integers 0 to n - 1, of shape (n,). As `torch.randperm`."""
    n = integer_argument("randperm", "n", 1, n)
    shape, kind, source = asked_shape("randperm", (n,)), dtype_or(dtype, INT64, out=out), source_of(generator, device)
    if (most := PERMUTED.get(torch_name(kind))) is not None and n > most:
        raise RuntimeError(f"n cannot be greater than {most} for {torch_name(kind)} type.")
    if kind.kind in "iu" and not dims.is_dim(n):
        fitting(n, kind)

    def permuted(shape: tuple[int, ...]) -> np.ndarray:
        rows = [source.permutation(n, kind) for _ in range(math.prod(shape[:-1]))]
        return np.asarray(rows, kind).reshape(shape)

    return finished(sample(permuted, shape, kind, source, device=device), out, requires_grad)


def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Zeros and ones of the shape and dtype of `input`, which holds the probabilities unless `p` is given.

    Raises RuntimeError for a probability outside [0, 1], NotImplementedError for an integer `input`.
    """
    if out is not None:
        return into(out, "bernoulli", bernoulli, input, p, generator=generator)
    shape_of(input, "bernoulli")
    if p is not None:
        drawn = bernoulli_with(input, p, generator)
    else:
        check_float(input._dtype(), "bernoulli_tensor_cpu_p_")
        drawn = bernoulli_of(input, generator)
    since = next(sequence)
    return enclosed(_underived(drawn, input), "BernoulliBackward0", since)


def _underived(drawn: Tensor, *parameters: Tensor) -> Tensor:
    """`drawn`, from which gradients of zeros flow to the parameters of its distribution."""
    for x in parameters:
        if x._n is not None and grad_enabled():
            everywhere = E.full(shape=tuple(drawn._d.shape), value=True, dtype=BOOL)
            drawn = E.where(everywhere, drawn, converted(x, drawn._dtype()))
    return drawn


def normal(
    mean: Any, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, out: Tensor | None = None,
    dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Normal numbers: `mean` and `std` are numbers and `size` a shape, or tensors. As `torch.normal`."""
    tensors = [x for x in (mean, std) if isinstance(x, Tensor)]
    source = source_of(generator, tensors[0] if tensors else device)
    if tensors and out is not None:
        return into(out, "normal", normal, mean, std, generator=generator)
    if not tensors:
        if size is None:
            raise no_overload("normal", (mean, std))
        shape, kind = asked_shape("normal", (size,)), float_dtype(dtype, "normal_kernel_cpu", out)
        check_std(std)
        draw = lambda shape: source.normal(shape, kind, mean, std)
        return finished(sample(draw, shape, kind, source, device=device), out, requires_grad)
    since = next(sequence)
    shape = broadcast_shapes([tuple(t._d.shape) for t in tensors])
    kind = tensors[0]._dtype()
    if not isinstance(std, Tensor):
        check_std(std)
        check_float(kind, "normal_kernel_cpu")
        result = E.add(sample(lambda shape: source.normal(shape, kind, 0.0, std), shape, kind, source, mean), mean)
    else:
        if std._dtype().kind == "c":
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if on_arrays(std) and bool(np.any(std._array() < 0)):
            raise RuntimeError("normal expects all elements of std >= 0.0")
        check_float(kind, "normal_kernel_cpu")
        result = E.add(E.mul(sample(lambda shape: source.normal(shape, kind), shape, kind, source, std), std), mean)
    result = converted(result.detach(), kind)
    node = 3 if len(tensors) == 2 else 1 if isinstance(mean, Tensor) else 2
    return enclosed(_underived(result, *tensors), f"NormalBackward{node}", since)


def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None,
                out: Tensor | None = None) -> Tensor:  # fmt: skip
    """Indices drawn with probabilities in proportion to the last dim of `input`. As `torch.multinomial`.

    input: (n,) or (m, n), floating; returns (num_samples,) or (m, num_samples), int64. Raises RuntimeError for any
    other shape or dtype, for a negative, infinite or nan entry, for a sum of zero, and for more samples than entries
    without `replacement`.
    """
    from eager.rng.multinomial import draw

    if out is not None:
        return into(out, "multinomial", multinomial, input, num_samples, replacement, generator=generator)
    num_samples = integer_argument("multinomial", "num_samples", 2, num_samples)
    return draw(input, num_samples, replacement, source_of(generator, input))


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson numbers with the rates in `input`. As `torch.poisson`. RuntimeError for a negative rate."""
    check_real_floating(input, "poisson_cpu")
    message = "invalid Poisson rate, expected rate to be non-negative"
    if not on_arrays():
        return rejected(
            "poisson", E.required(input.detach(), E.ge(input.detach(), 0), message=message), generator=generator
        )
    if not np.all(input._array() >= 0):
        raise RuntimeError(message)
    return rejected("poisson", input, generator=generator)
