"""Transformer blocks, on vectors, images and tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import eager as torch
from eager import nn

from .layers import attention, conv, cross_entropy, layer_norm, linear, squares
from .training import Training, channels_last, floats, kernel, labels, matrix, own, scale_shift

F = nn.functional


class Block(nn.Module):
    """A pre-norm Transformer block."""

    def __init__(self, width: int, heads: int, causal: bool = False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def block_parameters(block: Block) -> dict[str, Any]:
    return {
        name: matrix(layer) if isinstance(layer, nn.Linear) else scale_shift(layer)
        for name, layer in block.named_children()
    }


def jax_block(p: Any, x: Any, heads: int, causal: bool = False) -> Any:
    batch, length, width = x.shape
    qkv = linear(p["qkv"], layer_norm(p["norm1"], x)).reshape(batch, length, 3, heads, width // heads)
    mixed = attention(*jnp.moveaxis(qkv, 2, 0), causal)
    x = x + linear(p["out"], mixed.reshape(batch, length, width))
    return x + linear(p["down"], jax.nn.gelu(linear(p["up"], layer_norm(p["norm2"], x)), approximate=False))


def transformer() -> Training:
    """A Transformer block of width 128 with 4 heads on 16 sequences of 64; mean squared error."""
    model = Block(128, 4)
    return Training(
        model,
        lambda x, y: ((model(x) - y) ** 2).mean(),
        (floats(16, 64, 128), floats(16, 64, 128)),
        block_parameters(model),
        lambda p, x, y: squares(jax_block(p, x, 4), y),
    )


class ViT(nn.Module):
    """Patches of 4x4 by a convolution, a class token, two blocks."""

    def __init__(self, width: int, heads: int, classes: int):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(1, 65, width))
        self.blocks = nn.Sequential(Block(width, heads), Block(width, heads))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


def vit() -> Training:
    """A ViT of width 64 with 4 heads on 8 images of 32x32."""
    width, heads = 64, 4
    model = ViT(width, heads, 10)
    images, y = floats(8, 3, 32, 32), labels(10, 8)

    def jax_loss(p: Any, x: Any, y: Any) -> Any:
        x = conv(p["patches"], x, stride=4, padding=0).reshape(x.shape[0], 64, width)
        x = jnp.concatenate([jnp.broadcast_to(p["token"], (x.shape[0], 1, width)), x], 1) + p["places"]
        for block in p["blocks"]:
            x = jax_block(block, x, heads)
        return cross_entropy(linear(p["head"], layer_norm(p["norm"], x[:, 0])), y)

    return Training(
        model,
        lambda x, y: F.cross_entropy(model(x), y),
        (images, y),
        {
            "patches": kernel(model.patches),
            "token": own(model.token),
            "places": own(model.places),
            "blocks": [*map(block_parameters, model.blocks)],
            "norm": scale_shift(model.norm),
            "head": matrix(model.head),
        },
        jax_loss,
        jax_batch=(channels_last(images), y),
    )


class GPT(nn.Module):
    """One causal block whose embedding is its head as well."""

    def __init__(self, vocabulary: int, length: int, width: int, heads: int):
        super().__init__()
        self.embedding, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.block, self.norm = Block(width, heads, causal=True), nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        nn.init.normal_(self.embedding.weight, std=0.02)
        nn.init.normal_(self.places.weight, std=0.02)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens) + self.places(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.block(x)))


def gpt() -> Training:
    """A GPT of width 128 with 4 heads and 512 tokens on 8 sequences of 64."""
    vocabulary, heads = 512, 4
    model = GPT(vocabulary, 64, 128, heads)

    def loss(tokens: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(model(tokens).view(-1, vocabulary), following.view(-1))

    def jax_loss(p: Any, tokens: Any, following: Any) -> Any:
        x = jax_block(p["block"], p["embedding"][tokens] + p["places"], heads, causal=True)
        return cross_entropy(layer_norm(p["norm"], x) @ p["embedding"].T, following)

    return Training(
        model,
        loss,
        (labels(vocabulary, 8, 64), labels(vocabulary, 8, 64)),
        {
            "embedding": own(model.embedding.weight),
            "places": own(model.places.weight),
            "block": block_parameters(model.block),
            "norm": scale_shift(model.norm),
        },
        jax_loss,
    )


TRAININGS: dict[str, Callable[[], Training]] = {"Transformer block": transformer, "ViT": vit, "GPT block": gpt}
