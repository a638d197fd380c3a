"""Attention of several heads, and transformers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core import dtypes
from eager.core.tensor import Tensor
from eager.nn import functional as F
from eager.nn import init
from eager.nn.functions.attention import added_mask, check_masks
from eager.nn.module import Module
from eager.nn.modules.batchnorm import LayerNorm
from eager.nn.modules.container import ModuleList
from eager.nn.modules.dropout import Dropout
from eager.nn.modules.linear import Linear
from eager.nn.parameters import guard_training, new_parameter
from graphc.ops.dtypes import default_float

__all__ = [
    "MultiheadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer",
]  # fmt: skip


class NonDynamicallyQuantizableLinear(Linear):
    """Linear, under the name that PyTorch's attention prints."""


class MultiheadAttention(Module):
    """Attention of `num_heads` heads (Vaswani et al. 2017), over (L, N, E), or (N, L, E) with `batch_first`."""

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device: object = None, dtype: object = None,
    ):  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        separate = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        if self._qkv_same_embed_dim:
            self.in_proj_weight = new_parameter((3 * embed_dim, embed_dim), device, dtype)
            for name in separate:
                self.register_parameter(name, None)
        else:
            for name, width in separate.items():
                self.register_parameter(name, new_parameter((embed_dim, width), device, dtype))
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", new_parameter((3 * embed_dim,), device, dtype) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, new_parameter((1, 1, embed_dim), device, dtype) if add_bias_kv else None)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
                need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """(output (L, N, E), weights (N, L, S) or None). True in a bool mask means "do not attend"."""
        turned = self.batch_first and len(query._d.shape) == 3
        if turned:
            same = query is key, key is value
            query = query.transpose(0, 1)  # type: ignore[attr-defined]
            key = query if same[0] else key.transpose(0, 1)  # type: ignore[attr-defined]
            value = key if same[1] else value.transpose(0, 1)  # type: ignore[attr-defined]
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=guard_training(self), key_padding_mask=key_padding_mask, need_weights=need_weights,
            attn_mask=attn_mask, use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight, k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return (output.transpose(0, 1) if turned else output), weights  # type: ignore[attr-defined]


Activation = str | Callable[[Tensor], Tensor]


def causal_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    """(size, size): -inf above the diagonal, so that no place attends to a later one."""
    kind = default_float() if dtype is None else dtypes.to_numpy(dtype)
    return Tensor._wrap(np.triu(np.full((size, size), -np.inf, kind), 1))


def _activation(name: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(name, str):
        return name
    if name not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {name}")
    return getattr(F, name)


def _copies(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _is_causal(mask: Tensor | None, is_causal: bool | None) -> bool:
    """What `is_causal` says, or whether `mask` is the causal one."""
    if is_causal is not None or mask is None or not isinstance(mask._d, np.ndarray):
        return bool(is_causal)
    size = mask._d.shape[-1]
    return (
        mask._d.shape == (size, size)
        and mask._d.dtype.kind == "f"
        and bool((mask._known() == causal_mask(size)._array()).all())
    )


class _Layer(Module):
    """What both kinds of layer share: attentions and a feed-forward block, each with dropout, LayerNorm and a residual.

    With `norm_first`, the norm is before the block, else behind the residual.
    """

    def _make(self, arguments: dict[str, Any], *attentions: str) -> None:
        """Make the blocks from the arguments of `__init__`; `attentions` are the names of those that attend."""
        Module.__init__(self)
        width, hidden, dropout = (arguments[name] for name in ("d_model", "dim_feedforward", "dropout"))
        options = {name: arguments[name] for name in ("bias", "device", "dtype")}
        for name in attentions:
            attention = MultiheadAttention(
                width, arguments["nhead"], dropout, batch_first=arguments["batch_first"], **options
            )
            setattr(self, name, attention)
        self.linear1 = Linear(width, hidden, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(hidden, width, **options)
        self.norm_first = arguments["norm_first"]
        blocks = range(1, len(attentions) + 2)
        for i in blocks:
            setattr(self, f"norm{i}", LayerNorm(width, arguments["layer_norm_eps"], **options))
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = kind = _activation(arguments["activation"])
        if len(attentions) == 1:  # PyTorch's encoder layers ask for it
            self.activation_relu_or_gelu = 1 if kind is F.relu else 2 if kind is F.gelu else 0

    def _through(self, x: Tensor, *blocks: tuple[Callable[[Tensor], Tensor], Module]) -> Tensor:
        for block, norm in blocks:
            x = x + block(norm(x)) if self.norm_first else norm(x + block(x))
        return x

    def _feedforward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _attended(self, attention: Module, x: Tensor, memory: Tensor, mask: Tensor | None, padding: Tensor | None,
                  is_causal: bool) -> Tensor:  # fmt: skip
        return attention(
            x, memory, memory, attn_mask=mask, key_padding_mask=padding, is_causal=is_causal and mask is not None,
            need_weights=False,
        )[0]  # fmt: skip


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward block, each with a residual and LayerNorm (before it with `norm_first`)."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: Activation = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None):  # fmt: skip
        self._make(locals(), "self_attn")

    def forward(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool = False) -> Tensor:  # fmt: skip
        """The shape and dtype of `src`."""
        check_masks(("src_key_padding_mask", src_key_padding_mask), ("src_mask", src_mask))
        src_mask, src_key_padding_mask = (added_mask(mask, src._dtype()) for mask in (src_mask, src_key_padding_mask))

        def attend(x: Tensor) -> Tensor:
            return self.dropout1(self._attended(self.self_attn, x, x, src_mask, src_key_padding_mask, is_causal))

        def feed(x: Tensor) -> Tensor:
            return self.dropout2(self._feedforward(x))

        return self._through(src, (attend, self.norm1), (feed, self.norm2))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the memory, and a feed-forward block, each with a residual and LayerNorm."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: Activation = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None):  # fmt: skip
        self._make(locals(), "self_attn", "multihead_attn")

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor:  # fmt: skip
        """The shape and dtype of `tgt`."""

        def attend(x: Tensor) -> Tensor:
            return self.dropout1(self._attended(self.self_attn, x, x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))

        def recall(x: Tensor) -> Tensor:
            return self.dropout2(
                self._attended(self.multihead_attn, x, memory, memory_mask, memory_key_padding_mask, memory_is_causal)
            )

        def feed(x: Tensor) -> Tensor:
            return self.dropout3(self._feedforward(x))

        return self._through(tgt, (attend, self.norm1), (recall, self.norm2), (feed, self.norm3))


class TransformerEncoder(Module):
    """A stack of copies of `encoder_layer`, then `norm`."""

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None,
                 enable_nested_tensor: bool = True, mask_check: bool = True):  # fmt: skip
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool | None = None) -> Tensor:  # fmt: skip
        """The shape and dtype of `src`."""
        check_masks(("src_key_padding_mask", src_key_padding_mask), ("mask", mask))
        mask, src_key_padding_mask = (added_mask(each, src._dtype()) for each in (mask, src_key_padding_mask))
        causal = _is_causal(mask, is_causal)
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask)
        return output if self.norm is None else self.norm(output)


class TransformerDecoder(Module):
    """A stack of copies of `decoder_layer`, then `norm`."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool | None = None, memory_is_causal: bool = False) -> Tensor:  # fmt: skip
        """The shape and dtype of `tgt`."""
        causal = _is_causal(tgt_mask, tgt_is_causal)
        output = tgt
        for layer in self.layers:
            output = layer(
                output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder of `src` and a decoder of `tgt` that attends to it."""

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = F.relu, custom_encoder: Any = None,
        custom_decoder: Any = None, layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
        bias: bool = True, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__()
        layer = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device,
            dtype,
        )  # fmt: skip
        norm = lambda: LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        if custom_encoder is None:
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(*layer), num_encoder_layers, norm())
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(*layer), num_decoder_layers, norm())
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if len(parameter._d.shape) > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """src (S, N, E) and tgt (T, N, E), or (N, S, E) and (N, T, E) with `batch_first` -> the shape of tgt."""
        batched = len(src._d.shape) == 3
        batch_dim = 0 if self.batch_first else 1
        if batched and src._d.shape[batch_dim] != tgt._d.shape[batch_dim]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src._d.shape[-1] != self.d_model or tgt._d.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """(sz, sz): -inf above the diagonal, so that no place attends to a later one."""
        return causal_mask(sz, device, dtype)
