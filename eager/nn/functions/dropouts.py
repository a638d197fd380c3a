"""Dropout, of elements and of channels. As in `torch.nn.functional`."""

from __future__ import annotations

import math

from eager.core.sparse import is_sparse, not_implemented
from eager.core.tensor import Tensor
from eager.core.warned import warn
from eager.engine.inplace import assign, check_castable
from eager.engine.language import E
from eager.engine.node_names import named
from eager.functional.arguments import shape_of
from eager.rng.sampling import sample, sample_like, source_of
from graphc.ops.dtypes import FLOAT32
from graphc.ops.rules import torch_name

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]

OTHER_DIMS = (
    "dropout{spatial}d: Received a {ndim}-D input to dropout{spatial}d, which is deprecated and will result in an "
    "error in a future release. To retain the behavior and silence this warning, please use dropout instead. Note that "
    "dropout{spatial}d exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, a channel "
    "dimension, and an optional batch dimension (i.e. {least}D or {most}D inputs)."
)
SELU_LIMIT = -1.7580993408473766  # of selu, far left


def check_probability(p: float) -> None:
    """Raise PyTorch's ValueError unless 0 <= p <= 1."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _into(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    return assign(input, result, "dropout") if inplace else result


def _check_dtype(input: Tensor) -> None:
    dtype = input._dtype()
    check_castable(FLOAT32, dtype)
    if dtype.kind == "c":
        raise NotImplementedError(f"\"bernoulli_scalar_cpu_\" not implemented for '{torch_name(dtype)}'")


def _kept(like: Tensor, shape: tuple[int, ...] | None, p: float) -> Tensor:
    """Ones with probability 1 - p, else zeros, of `shape`, or of that of `like`, in the order of its memory."""
    if is_sparse(like):
        raise not_implemented("bernoulli_", like._d)
    kind = like._dtype()
    source = source_of(None, like)
    draw = lambda shape: source.bernoulli(shape, kind, 1 - p)
    if shape is not None:
        return sample(draw, shape, kind, source, like)
    return sample_like(draw, like, kind, source)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element 0 with probability `p`, else divided by 1 - p; `input` itself if not `training`. As in PyTorch."""
    check_probability(p)
    shape_of(input, "dropout")
    return _dropped(input, None, p, training, inplace)


def _dropped(
    input: Tensor, noise: tuple[int, ...] | None, p: float, training: bool, inplace: bool, to_limit: bool = False
) -> Tensor:
    """`to_limit`: zeros are those of selu's limit, shifted and scaled so that mean 0 and variance 1 stay."""
    if not training or p == 0:
        return input
    _check_dtype(input)
    if p == 1:
        return _into(input, E.mul(input, 0.0), inplace)
    kept = _kept(input, noise, p)
    if not to_limit:
        return _into(input, E.mul(input, E.div(kept, 1 - p)), inplace)
    scale = 1.0 / math.sqrt((SELU_LIMIT**2 * p + 1) * (1 - p))
    shift = E.add(E.mul(E.add(kept, -1), -SELU_LIMIT * scale), -SELU_LIMIT * scale * p)
    return _into(input, E.add(E.mul(input, E.mul(kept, scale)), shift), inplace)


def _by_channel(input: Tensor, p: float, training: bool, inplace: bool, unbatched: bool) -> Tensor:
    shape = tuple(input._d.shape)
    if len(shape) + unbatched < 2:
        if training:
            raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
        return input
    lead = (1, *shape) if unbatched else shape
    if not unbatched or not training or not p > 0:
        return _dropped(input, (*lead[:2], *(1,) * (len(lead) - 2)), p, training, inplace)
    batch = E.reshape(input, shape=lead)
    result = _dropped(batch, (*lead[:2], *(1,) * (len(lead) - 2)), p, True, False)
    return _into(input, named(E.reshape(result, shape=shape), "SqueezeBackward1"), inplace)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, L) or (C, L) dropped. As `torch.nn.functional.dropout1d`."""
    check_probability(p)
    ndim = len(shape_of(input, "dropout1d"))
    if ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note that dropout1d exists to provide "
            "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch "
            "dimension (i.e. 2D or 3D inputs)."
        )
    return _by_channel(input, p, training, inplace, ndim == 2)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, H, W) dropped; (N, C, L) is taken for signals. As `torch.nn.functional.dropout2d`."""
    check_probability(p)
    ndim = len(shape_of(input, "dropout2d"))
    if ndim not in (3, 4):
        warn(OTHER_DIMS.format(ndim=ndim, spatial=2, least=3, most=4))
    if ndim == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain "
            "the 1D channel-wise dropout behavior, please switch to using dropout1d instead."
        )
    return _by_channel(input, p, training, inplace, False)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, D, H, W) or (C, D, H, W) dropped. As `torch.nn.functional.dropout3d`."""
    check_probability(p)
    ndim = len(shape_of(input, "dropout3d"))
    if ndim not in (4, 5):
        warn(OTHER_DIMS.format(ndim=ndim, spatial=3, least=4, most=5))
    return _by_channel(input, p, training, inplace, ndim != 5)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout to selu's limit that keeps mean 0 and variance 1. As `torch.nn.functional.alpha_dropout`."""
    check_probability(p)
    shape_of(input, "alpha_dropout")
    return _dropped(input, None, p, training, inplace, to_limit=True)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels. As `torch.nn.functional.feature_alpha_dropout`."""
    check_probability(p)
    shape = tuple(shape_of(input, "feature_alpha_dropout"))
    if training and len(shape) < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return _dropped(input, (*shape[:2], *(1,) * (len(shape) - 2)), p, training, inplace, to_limit=True)
