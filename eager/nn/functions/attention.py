"""Attention. As in `torch.nn.functional`."""

from __future__ import annotations

import math

import numpy as np

from eager.core.tensor import Tensor
from eager.core.warned import warn
from eager.engine.language import E
from eager.engine.node_names import named
from eager.functional.arguments import constant, shape_of
from eager.functional.joining import cat, chunk
from eager.functional.precision import rounds_once
from eager.functional.slices import repeat_interleave
from eager.nn.functions.activation import refused_along
from eager.nn.functions.distance import linear
from eager.nn.functions.dropouts import dropout
from graphc.ops.dtypes import BOOL, SHORT_NAMES, is_floating
from graphc.ops.rules import C_NAMES, c_name

NEED_MASK = (
    "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
    "`generate_square_subsequent_mask` to create this mask."
)
MISMATCHED = "Support for mismatched {} and {} is deprecated. Use same type for both instead."

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]


def _c_name(t: Tensor) -> str:
    name = C_NAMES[SHORT_NAMES[t._dtype()]]
    return f"{name} int" if name in ("long", "short") else name


def _swapped(x: Tensor) -> Tensor:
    ndim = len(x._d.shape)
    return E.permute(x, dims=(*range(ndim - 2), ndim - 1, ndim - 2))


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:  # fmt: skip
    """softmax(query @ key.T * scale + mask) @ value over the last two dims. As in PyTorch.

    A bool mask says where to attend (a row that attends nowhere gives 0); `is_causal` attends to no later position;
    `enable_gqa` lets several heads of `query` share one of `key` and `value`.
    """
    dims = [len(shape_of(x, "scaled_dot_product_attention")) for x in (query, key, value)]
    if min(dims) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{dims[0]} key.dim: {dims[1]} and value.dim: {dims[2]} instead."
        )
    if not query._dtype() == key._dtype() == value._dtype():
        names = (c_name(x._dtype()) for x in (query, key, value))
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: {} key.dtype: {} and "
            "value.dtype: {} instead.".format(*names)
        )
    if attn_mask is not None:
        if is_causal:
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
            )
        if attn_mask._dtype() != BOOL and attn_mask._dtype() != query._dtype() and not is_floating(attn_mask._dtype()):
            raise RuntimeError(
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                f"{_c_name(attn_mask)} and  query.dtype: {_c_name(query)} instead."
            )
    if enable_gqa:
        heads = query._d.shape[-3]
        if any(heads % x._d.shape[-3] for x in (key, value)):
            raise RuntimeError("Number of heads in key and value must divide the number of heads in ")
        key = repeat_interleave(key, heads // key._d.shape[-3], -3)
        value = repeat_interleave(value, heads // value._d.shape[-3], -3)
    return named(_attended(query, key, value, attn_mask, dropout_p, is_causal, scale), _node(query))


@rounds_once
def _attended(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, is_causal: bool,
              scale: float | None) -> Tensor:  # fmt: skip
    weights = _attention_weights(query, key, mask, is_causal, scale)
    return E.matmul(dropout(weights, dropout_p), value)


def _node(query: Tensor) -> str:
    # PyTorch's kernel for batches of heads shows as one node
    return "UnsafeViewBackward0" if len(query._d.shape) != 4 else "ScaledDotProductFlashAttentionForCpuBackward0"


def _attention_weights(query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None) -> Tensor:
    factor = 1 / math.sqrt(max(query._d.shape[-1], 1)) if scale is None else scale
    scores = E.matmul(E.mul(query, factor), _swapped(key))
    if not is_floating(scores._dtype()):
        raise refused_along("softmax", len(scores._d.shape) - 1, scores)
    if is_causal:
        causal = Tensor._wrap(np.tri(query._d.shape[-2], key._d.shape[-2], dtype=bool))
        scores = E.where(causal, scores, constant(-math.inf, scores))
    elif mask is not None and mask._dtype() == BOOL:
        scores = E.where(mask, scores, constant(-math.inf, scores))
    elif mask is not None:
        scores = E.add(scores, mask)
    axis = len(scores._d.shape) - 1
    if mask is None:
        return E.softmax(scores, axis=axis)
    nowhere = E.all(E.eq(scores, -math.inf), axis=(axis,), keepdims=True)
    zero = constant(0, scores)
    return E.where(nowhere, zero, E.softmax(E.where(nowhere, zero, scores), axis=axis))


def added_mask(mask: Tensor | None, dtype: np.dtype) -> Tensor | None:
    """A mask to be added: -inf where a bool one is True (which here means "do not attend")."""
    if mask is None or mask._dtype() != BOOL:
        return mask
    low = E.full(shape=(), value=-math.inf, dtype=dtype)
    return E.where(mask, low, constant(0, low))


def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
                                 in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None,
                                 bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
                                 out_proj_bias: Tensor | None, training: bool = True,
                                 key_padding_mask: Tensor | None = None, need_weights: bool = True,
                                 attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
                                 q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
                                 v_proj_weight: Tensor | None = None, static_k: Tensor | None = None,
                                 static_v: Tensor | None = None, average_attn_weights: bool = True,
                                 is_causal: bool = False) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Attention of `num_heads` heads over query (L, N, E), key (S, N, E), value (S, N, E), or without N.

    As `torch.nn.functional.multi_head_attention_forward`: (output (L, N, E), weights (N, L, S) or None). True in a
    bool mask means "do not attend". Raises AssertionError or RuntimeError for shapes that do not fit.
    """
    batched = _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    check_masks(("key_padding_mask", key_padding_mask), ("attn_mask", attn_mask))
    if not batched:
        query, key, value = (E.reshape(x, shape=(x._d.shape[0], 1, x._d.shape[1])) for x in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = E.reshape(key_padding_mask, shape=(1, *key_padding_mask._d.shape))
    length, batch, width = query._d.shape
    if width != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    size = width // num_heads
    if size * num_heads != width:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    if is_causal and attn_mask is None:
        raise RuntimeError(NEED_MASK)
    _check_sources(key, value, use_separate_proj_weight)
    padding = added_mask(key_padding_mask, query._dtype())
    mask = added_mask(attn_mask, query._dtype())
    q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias, use_separate_proj_weight,
                         (q_proj_weight, k_proj_weight, v_proj_weight))  # fmt: skip
    mask = _checked_mask(mask, length, key._d.shape[0], batch, num_heads)
    for dim, expected in enumerate((batch, key._d.shape[0]) if padding is not None else ()):
        if (given := padding._d.shape[dim]) != expected:  # type: ignore[union-attr]
            raise AssertionError(f"Expected key_padded_mask.shape[{dim}] to be {expected}, but got {given}")
    if bias_k is not None and bias_v is not None:
        k = cat([k, E.broadcast_to(bias_k, shape=(1, batch, width))])
        v = cat([v, E.broadcast_to(bias_v, shape=(1, batch, width))])
        mask, padding = _widened(mask), _widened(padding)

    def heads(x: Tensor) -> Tensor:
        return E.permute(E.reshape(x, shape=(x._d.shape[0], batch * num_heads, size)), dims=(1, 0, 2))

    q = heads(q)
    k = heads(k) if static_k is None else static_k
    v = heads(v) if static_v is None else static_v
    if add_zero_attn:
        zeros = E.full(shape=(batch * num_heads, 1, size), value=0, dtype=k._dtype())
        k, v = cat([k, zeros], 1), cat([v, zeros], 1)
        mask, padding = _widened(mask), _widened(padding)
    source = k._d.shape[1]
    if padding is not None:
        spread = E.broadcast_to(E.reshape(padding, shape=(batch, 1, 1, source)), shape=(batch, num_heads, 1, source))
        spread = E.reshape(spread, shape=(batch * num_heads, 1, source))
        mask = spread if mask is None else E.add(mask, spread)
    scores = E.matmul(E.mul(q, math.sqrt(1.0 / size)), _swapped(k))
    if mask is not None:
        scores = E.add(scores, mask)
    weights = E.softmax(scores, axis=2)
    if training and dropout_p > 0.0:
        weights = dropout(weights, dropout_p)
    mixed = E.permute(E.matmul(weights, v), dims=(1, 0, 2))
    output = linear(E.reshape(mixed, shape=(length * batch, width)), out_proj_weight, out_proj_bias)
    output = named(E.reshape(output, shape=(length, batch, output._d.shape[1])), "ViewBackward0")
    shown = None
    if need_weights:
        shown = E.reshape(weights, shape=(batch, num_heads, length, source))
        if average_attn_weights:
            shown = named(E.mean(shown, axis=(1,), keepdims=False), "MeanBackward1")
    if not batched:
        output = named(E.reshape(output, shape=(length, width)), "SqueezeBackward1")
        shown = None if shown is None else named(E.reshape(shown, shape=tuple(shown._d.shape[1:])), "SqueezeBackward1")
    return output, shown


def _widened(mask: Tensor | None) -> Tensor | None:
    """One more key, to which all may attend."""
    if mask is None:
        return None
    zeros = (0,) * len(mask._d.shape)
    return E.pad_zeros(mask, low=zeros, high=(*zeros[1:], 1), interior=zeros)


def _projected(query: Tensor, key: Tensor, value: Tensor, weight: Tensor | None, bias: Tensor | None, separate: bool,
               weights: tuple[Tensor | None, ...]) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    if separate:
        for name, w in zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), weights, strict=True):
            if w is None:
                raise AssertionError(f"use_separate_proj_weight is True but {name} is None")
        biases = (None,) * 3 if bias is None else chunk(bias, 3)
        wide = query._d.shape[-1]
        for name, x, w in zip(("query", "key", "value"), (query, key, value), weights, strict=True):
            if tuple(w._d.shape) != (expected := (wide, x._d.shape[-1])):  # type: ignore[union-attr]
                raise AssertionError(f"expecting {name} weights shape of {expected}, but got {w.shape}")  # type: ignore[union-attr]
        projected = [linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]  # type: ignore[arg-type]
        return projected[0], projected[1], projected[2]
    if weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    if query is key and key is value:
        parts = chunk(linear(query, weight, bias), 3, -1)
        return parts[0], parts[1], parts[2]
    biases = (None,) * 3 if bias is None else chunk(bias, 3)
    made = [linear(x, w, b) for x, w, b in zip((query, key, value), chunk(weight, 3), biases, strict=True)]
    return made[0], made[1], made[2]


def check_masks(padding: tuple[str, Tensor | None], other: tuple[str, Tensor | None]) -> None:
    """Raise AssertionError for masks, given with their names, of a wrong dtype; warn of two dtypes, as PyTorch does."""
    kinds = [mask._dtype() for _, mask in (padding, other) if mask is not None]
    for name, mask in (padding, other):
        if mask is not None and mask._dtype() != BOOL and not is_floating(mask._dtype()):
            raise AssertionError(f"only bool and floating types of {name} are supported")
    if len(set(kinds)) > 1:
        warn(MISMATCHED.format(padding[0], other[0]))


def _check_sources(key: Tensor, value: Tensor, separate: bool) -> None:
    """Raise AssertionError unless there is a value for each key, and of its width if one weight projects them."""
    if separate and key._d.shape[:2] != value._d.shape[:2]:
        raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    if not separate and key._d.shape != value._d.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


def _check_ranks(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, heads: int
) -> bool:
    """Whether there is a batch dimension. Raises AssertionError for numbers of dimensions that do not go together."""
    ndim = len(shape_of(query, "multi_head_attention_forward", "query"))
    if ndim not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {ndim}-D query tensor")
    kind, other = ("batched", 3) if ndim == 3 else ("unbatched", 2)
    dims = len(key._d.shape), len(value._d.shape)
    if dims != (other, other):
        raise AssertionError(
            f"For {kind} ({other}-D) `query`, expected `key` and `value` to be {other}-D but found {dims[0]}-D and "
            f"{dims[1]}-D tensors respectively"
        )
    if key_padding_mask is not None and len(key_padding_mask._d.shape) != other - 1:
        raise AssertionError(
            f"For {kind} ({other}-D) `query`, expected `key_padding_mask` to be `None` or {other - 1}-D but found "
            f"{len(key_padding_mask._d.shape)}-D tensor instead"
        )
    if attn_mask is not None:
        if len(attn_mask._d.shape) not in (2, 3):
            raise AssertionError(
                f"For {kind} ({other}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                f"{len(attn_mask._d.shape)}-D tensor instead"
            )
        if ndim == 2 and len(attn_mask._d.shape) == 3:
            expected = (heads, query._d.shape[0], key._d.shape[0])
            if tuple(attn_mask._d.shape) != expected:
                raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return ndim == 3


def _checked_mask(mask: Tensor | None, length: int, source: int, batch: int, heads: int) -> Tensor | None:
    if mask is None:
        return None
    shape = tuple(mask._d.shape)
    expected = (length, source) if len(shape) == 2 else (batch * heads, length, source)
    if shape != expected:
        raise RuntimeError(f"The shape of the {len(shape)}D attn_mask is {mask.shape}, but should be {expected}.")
    return E.reshape(mask, shape=(1, *shape)) if len(shape) == 2 else mask
