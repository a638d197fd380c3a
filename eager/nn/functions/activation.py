"""Activations. As in `torch.nn.functional`; with `inplace` the result is written to `input`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core import operands
from eager.core.state import grad_enabled, sequence
from eager.core.tensor import Tensor
from eager.core.warned import warn
from eager.engine.inplace import assign
from eager.engine.language import E
from eager.engine.node_names import enclosed
from eager.functional.arguments import axis_of, check_real, constant, not_implemented, shape_of
from eager.functional.joining import cut
from eager.functional.naming import signature_of
from eager.functional.precision import rounds_once
from eager.functional.reductions import log_softmax as _log_softmax
from eager.functional.reductions import softmax as _softmax
from eager.rng import distributions
from eager.rng.fills import exponential_
from eager.rng.sampling import sample, source_of
from graphc.ops.dtypes import BOOL, FLOAT32, is_floating, is_half, is_inexact
from graphc.ops.rules import torch_name

__all__ = [
    "celu", "celu_", "elu", "elu_", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "log_softmax", "logsigmoid", "mish", "prelu", "relu", "relu6",
    "relu_", "rrelu", "rrelu_", "selu", "selu_", "sigmoid", "silu", "softmax", "softmin", "softplus", "softshrink",
    "softsign", "tanh", "tanhshrink", "threshold", "threshold_",
]  # fmt: skip

IMPLICIT_DIM = (
    "Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument."
)


def _one_node(name: str, input: Tensor, compute: Callable[[Tensor], Tensor], inplace: bool = False,
              kernel: str | None = None) -> Tensor:  # fmt: skip
    """`compute(input)` as one node of the history; written to `input` if `inplace`.

    kernel: of PyTorch, for real floating numbers only. NotImplementedError for others.
    """
    if kernel is not None:
        check_real(input, kernel)
    operands.shape(input)
    since = next(sequence)
    given = input
    if inplace and input._n is not None and grad_enabled():
        input = E.clone(input)  # gradient rules look at the values from before the write
    halves = input._d.dtype is not FLOAT32 and is_half(input._dtype())
    result = enclosed(rounds_once(compute)(input) if halves else compute(input), name, since)
    return assign(given, result, "activation") if inplace else result


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(input, 0). As `torch.nn.functional.relu`."""
    return input.relu_() if inplace else E.relu(input)  # type: ignore[attr-defined]


def relu_(input: Tensor) -> Tensor:
    """`relu` in place. As `torch.nn.functional.relu_`."""
    if not isinstance(input, Tensor):
        raise operands.not_a_tensor(input)
    return input.relu_()  # type: ignore[attr-defined]


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-input)). As `torch.nn.functional.sigmoid`."""
    return E.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """tanh(input). As `torch.nn.functional.tanh`."""
    return E.tanh(input)


def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """input * Phi(input), Phi by erf or its "tanh" approximation. As `torch.nn.functional.gelu`."""
    shape_of(input, "gelu")
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    compute = _gelu_by_erf if approximate == "none" else _gelu_by_tanh
    return _one_node("GeluBackward0", input, compute, kernel="GeluKernelImpl")


def _gelu_by_erf(x: Tensor) -> Tensor:
    return E.mul(E.mul(x, 0.5), E.add(E.erf(E.mul(x, math.sqrt(0.5))), 1.0))


def _gelu_by_tanh(x: Tensor) -> Tensor:
    cubed = E.mul(E.mul(E.square(x), x), 0.044715)
    inside = E.mul(E.add(x, cubed), math.sqrt(2 / math.pi))
    return E.mul(E.mul(x, 0.5), E.add(E.tanh(inside), 1.0))


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """input * sigmoid(input). As `torch.nn.functional.silu`."""
    if not is_inexact(operands.kind_of(input)):
        check_real(input, "silu_cpu")
    return _one_node("SiluBackward0", input, lambda x: E.mul(x, E.sigmoid(x)), inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """input where positive, else negative_slope * input, the slope at 0 too. As `torch.nn.functional.leaky_relu`."""
    compute = lambda x: E.leaky_relu(x, slope=negative_slope)
    return _one_node("LeakyReluBackward0", input, compute, inplace, "leaky_relu_cpu")


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """input where positive, else weight * input; a weight a channel, or one for all. As `torch.nn.functional.prelu`."""
    shape, slopes = shape_of(input, "prelu"), shape_of(weight, "prelu", "weight", 2)
    if input._dtype() != weight._dtype():
        names = torch_name(input._dtype()), torch_name(weight._dtype())
        raise RuntimeError("prelu: Type promoting not supported. Got {} and {}".format(*names))
    count = math.prod(slopes)
    if count != 1:
        if not shape:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = shape[1] if len(shape) > 1 else 1
        if channels != count:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{count} and channel size = {channels}."
            )
    if len(slopes) > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {len(slopes)}")
    axis = 1 if len(shape) > 1 else 0
    spread = tuple(count if i == axis else 1 for i in range(len(shape)))
    slope = E.reshape(weight, shape=spread)
    compute = lambda x: E.where(E.gt(x, 0), x, E.mul(x, slope))
    return _one_node("PreluKernelBackward0", input, compute, kernel="prelu_cpu")


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Leaky relu whose slopes are drawn from [lower, upper) while `training`. As `torch.nn.functional.rrelu`."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        mean = (lower + upper) / 2
        return _one_node("RreluWithNoiseBackward0", input, lambda x: leaky_relu(x, mean), inplace)
    check_real(input, "rrelu_with_noise_out_cpu")
    slopes = _leaky_slopes(E.stop_gradient(input), lower, upper)
    return _one_node("RreluWithNoiseBackward0", input, lambda x: E.mul(x, slopes), inplace)


def _leaky_slopes(x: Tensor, lower: float, upper: float) -> Tensor:
    """For each element of `x` a factor: drawn from [lower, upper) where it is not positive, else 1.

    How many are drawn depends on `x`: a compiled program has a path for each number of them.
    """
    below: Any = E.le(x, 0)
    kind, count = x._dtype(), int(below.sum()._known())
    source = source_of(None, x)
    draw = lambda shape: distributions.slopes(source, shape, lower, upper).astype(kind)
    return E.full(shape=tuple(x._d.shape), value=1.0, dtype=kind).masked_scatter(
        below, sample(draw, (count,), kind, source, x)
    )


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """input where positive, else alpha * (exp(input) - 1). As `torch.nn.functional.elu`."""
    compute = lambda x: E.elu(x, alpha=alpha, scale=1, rate=1)
    return _one_node("EluBackward0", input, compute, inplace, "elu_cpu")


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The self-normalizing scaled elu (Klambauer et al. 2017). As `torch.nn.functional.selu`."""
    compute = lambda x: E.elu(x, alpha=1.6732632423543772, scale=1.0507009873554805, rate=1)
    return _one_node("EluBackward0", input, compute, inplace, "elu_cpu")


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """input where positive, else alpha * (exp(input / alpha) - 1). As `torch.nn.functional.celu`."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    compute = lambda x: E.elu(x, alpha=alpha, scale=1, rate=1 / alpha)
    return _one_node("CeluBackward0", input, compute, inplace, "elu_cpu")


def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1 + exp(beta * input)) / beta; linear above `threshold`. As `torch.nn.functional.softplus`."""
    check_real(input, "softplus_cpu")
    if beta == 1 and threshold == 20:
        return E.softplus(input)  # equal to rounding above the threshold

    def compute(x: Tensor) -> Tensor:
        scaled = E.mul(x, beta)
        return E.where(E.gt(scaled, threshold), x, E.div(E.softplus(scaled), beta))

    return _one_node("SoftplusBackward0", input, compute)


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(input)). As `torch.nn.functional.logsigmoid`."""
    compute = lambda x: E.sub(constant(0, x), E.softplus(E.neg(x)))
    return _one_node("LogSigmoidBackward0", input, compute, kernel="log_sigmoid_cpu")


def softsign(input: Tensor) -> Tensor:
    """input / (1 + |input|). As `torch.nn.functional.softsign`."""
    return E.div(input, E.add(E.abs(input), 1))


def tanhshrink(input: Tensor) -> Tensor:
    """input - tanh(input). As `torch.nn.functional.tanhshrink`."""
    return E.sub(input, E.tanh(input))


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * tanh(softplus(input)). As `torch.nn.functional.mish`."""
    return _one_node("MishBackward0", input, lambda x: E.mul(x, E.tanh(E.softplus(x))), inplace, "mish_cpu")


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """input where above `threshold`, else `value`. As `torch.nn.functional.threshold`."""
    dtype = input._dtype()
    if not is_inexact(dtype):
        threshold, value = int(threshold), int(value)
    if dtype == BOOL or dtype.kind == "c":
        raise not_implemented("threshold_cpu", input)
    return _one_node("ThresholdBackward0", input, lambda x: E.where(E.le(x, threshold), constant(value, x), x), inplace)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """input where outside [-lambd, lambd], else 0. As `torch.nn.functional.hardshrink`."""
    compute = lambda x: E.where(E.le(E.abs(x), lambd), constant(0, x), x)
    return _one_node("HardshrinkBackward0", input, compute, kernel="hardshrink_cpu")


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """input moved towards 0 by `lambd`, at most to 0. As `torch.nn.functional.softshrink`. RuntimeError for < 0."""
    check_real(input, "softshrink_check")
    if lambd < 0:
        dtype = input._dtype()
        raise RuntimeError(
            f"lambda must be in range [0, {float(np.finfo(dtype).max):g}] for input dtype {torch_name(dtype)}, but "
            f"found {lambd:g}"
        )

    def compute(x: Tensor) -> Tensor:
        moved = E.where(E.gt(x, 0), E.sub(x, lambd), E.add(x, lambd))
        return E.where(E.le(E.abs(x), lambd), E.mul(x, 0), moved)  # zeros keep their sign

    return _one_node("SoftshrinkBackward0", input, compute)


def _bounded(input: Tensor, low: float, high: float) -> Tensor:
    """`input` limited to [low, high], with gradient 0 at the bounds, as PyTorch's hard activations have it."""
    return E.hard_least(E.hard_most(input, high), low)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` limited to [min_val, max_val]. As `torch.nn.functional.hardtanh`."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    dtype = operands.kind_of(input)
    if not is_inexact(dtype):
        min_val, max_val = int(min_val), int(max_val)
        if dtype == BOOL:
            raise RuntimeError("Bool inputs not supported for hardtanh")
        if dtype.kind == "u" and (min_val < 0 or max_val < 0):
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return _one_node("HardtanhBackward0", input, lambda x: _bounded(x, min_val, max_val), inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """`input` limited to [0, 6]. As `torch.nn.functional.relu6`."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """input / 6 + 1 / 2, limited to [0, 1]. As `torch.nn.functional.hardsigmoid`."""
    return _one_node("HardsigmoidBackward0", input, E.hardsigmoid, inplace, "hardsigmoid_cpu")


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * hardsigmoid(input). As `torch.nn.functional.hardswish`."""
    return _one_node("HardswishBackward0", input, E.hardswish, inplace, "hardswish_cpu")


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second. As `torch.nn.functional.glu`."""
    shape = shape_of(input, "glu")
    if not shape:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    axis = axis_of(dim, len(shape))
    n = shape[axis]
    if n % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {n}")
    if not is_inexact(input._dtype()):
        check_real(input, "glu_cpu")
    return _one_node(
        "GluBackward0", input, lambda x: E.mul(cut(x, axis, 0, n // 2), E.sigmoid(cut(x, axis, n // 2, n)))
    )


def _dim_or_guess(name: str, dim: int | None, ndim: int) -> int:
    if dim is not None:
        return dim
    warn(IMPLICIT_DIM.format(name=name))
    return 0 if ndim in (0, 1, 3) else 1


def refused_along(name: str, dim: int, input: Tensor) -> NotImplementedError:
    """PyTorch's error for the dtype of `input`, which its function `name` does not take along `dim`."""
    last = "lastdim_" if dim in (-1, len(input._d.shape) - 1) else ""
    return not_implemented(f"{name}_{last}kernel_impl", input)


def _ndim(x: Any) -> int:
    try:
        return len(x._d.shape)
    except AttributeError:
        return x.dim()  # as PyTorch asks, in Python


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(input) normalized to sum 1 along `dim`. As `torch.nn.functional.softmax`."""
    dim = _dim_or_guess("softmax", dim, _ndim(input))
    if dtype is None and not is_floating(input._dtype()):
        raise refused_along("softmax", dim, input)
    return _softmax(input, dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """softmax(-input). As `torch.nn.functional.softmin`."""
    return _softmax(E.neg(input), _dim_or_guess("softmin", dim, _ndim(input)), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """log(softmax(input)) along `dim`. As `torch.nn.functional.log_softmax`."""
    dim = _dim_or_guess("log_softmax", dim, _ndim(input))
    if dtype is None and not is_floating(input._dtype()):
        raise refused_along("log_softmax", dim, input)
    return _log_softmax(input, dim, dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the relaxed categorical distribution; `hard` makes it one-hot, with the soft one's gradient.

    As `torch.nn.functional.gumbel_softmax` (Jang et al. 2016).
    """
    clocks = exponential_(E.full(shape=tuple(shape_of(logits, "empty_like")), value=0, dtype=logits._dtype()))
    soft = _softmax(E.div(E.add(logits, E.neg(E.log(clocks))), tau), dim)
    if not hard:
        return soft
    axis = axis_of(dim, len(soft._d.shape))
    winner = E.argmax(soft, axis=axis, keepdims=True)
    places = Tensor._wrap(_ladder(soft._d.shape, axis))
    one_hot = E.cast(E.eq(places, winner), dtype=soft._dtype())
    return E.add(E.sub(one_hot, E.stop_gradient(soft)), soft)


def _ladder(shape: tuple[int, ...], axis: int) -> np.ndarray:
    return np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))])


def _in_place(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def method(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return function(input, *args, **kwargs, inplace=True)

    method.__name__ = method.__qualname__ = f"{function.__name__}_"
    method.__doc__ = f"`{function.__name__}` in place. As `torch.nn.functional.{function.__name__}_`."
    method.__signature__ = signature_of(function, without="inplace")  # type: ignore[attr-defined]
    return method


celu_, elu_, hardtanh_, leaky_relu_, rrelu_, selu_, threshold_ = map(
    _in_place, (celu, elu, hardtanh, leaky_relu, rrelu, selu, threshold)
)
