"""More programs for the model of memory: what XLA rewrites, stacks, sorts, factorizes, or computes more than once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import eager as torch
import eager.nn.functional as F
import graphc
from eager import nn
from eager.func import functional_call, grad, vmap
from eager.utils.checkpoint import checkpoint
from tests.memory.programs import GPTBlock, Made, forward, mlp, step


class First(nn.Module):
    """The first result of a layer."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, *args: Any) -> Any:
        return self.layer(*args)[0]


class Attends(nn.Module):
    """Causal attention by `scaled_dot_product_attention`."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.mix, self.heads = nn.Linear(width, 3 * width), heads

    def forward(self, x: Any) -> Any:
        n, t, d = x.shape
        q, k, v = (a.view(n, t, self.heads, d // self.heads).transpose(1, 2) for a in self.mix(x).chunk(3, -1))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, d)


class SelfAttention(nn.Module):
    """`MultiheadAttention` of a sequence with itself."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.attention(x, x, x, need_weights=False)[0]


def _gradients(fn: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        given = [a.detach().requires_grad_() for a in args]
        fn(*given).backward()
        return tuple(a.grad for a in given)

    return run


def _accumulated(model: Any, parts: int) -> Callable[..., Any]:
    optimizer = torch.optim.Adam(model.parameters())

    def run(x: Any, y: Any) -> None:
        optimizer.zero_grad()
        for a, b in zip(x.chunk(parts), y.chunk(parts), strict=True):
            (F.mse_loss(model(a), b) / parts).backward()
        optimizer.step()

    return run


def _halved(model: Any) -> Callable[..., Any]:
    optimizer = torch.optim.Adam(model.parameters())

    def run(x: Any, y: Any) -> None:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.mse_loss(model(x).float(), y)
        loss.backward()
        optimizer.step()

    return run


def _checkpointed(width: int) -> Callable[..., Any]:
    cell = nn.Linear(width, width)

    def body(carry: Any, x: Any) -> Any:
        carry = checkpoint(lambda c, x: (cell(c) + x).tanh(), carry, x, use_reentrant=False)
        return carry, carry.sum()

    def run(xs: Any) -> Any:
        cell.zero_grad()
        graphc.scan(body, torch.zeros(xs.shape[1], width), xs)[1].sum().backward()
        return cell.weight.grad

    return run


def _of_each(model: Any) -> Callable[..., Any]:
    params = {name: value.detach() for name, value in model.named_parameters()}

    def loss(params: Any, x: Any, y: Any) -> Any:
        return F.mse_loss(functional_call(model, params, (x[None],)), y[None])

    return lambda x, y: vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)


def _labels(out: Any, y: Any) -> Any:
    return F.cross_entropy(out.flatten(0, -2), y.flatten())


def _of_images(k: int) -> Iterator[tuple[str, Made]]:
    r, s, image = torch.randn, torch.optim, torch.randn(4 * k, 16, 24, 24)
    wave = nn.Sequential(nn.Conv1d(8, 32, 5, padding=2), nn.ReLU(), nn.Conv1d(32, 8, 1))
    yield "waves", step(wave, s.Adam, r(8 * k, 8, 256), r(8 * k, 8, 256))
    apart = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.GELU(), nn.Conv2d(16, 16, 1), nn.SiLU())
    yield "depthwise", step(apart, s.SGD, image, image + 1)
    up = nn.Sequential(nn.ConvTranspose2d(16, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh())
    yield "transposed", step(up, s.Adam, r(4 * k, 16, 8, 8), r(4 * k, 3, 32, 32))
    solid = nn.Sequential(nn.Conv3d(2, 8, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2), nn.Flatten(), nn.Linear(512, 4))
    yield "volumes", step(solid, s.Adam, r(2 * k, 2, 8, 8, 8), r(2 * k, 4))


def _of_sequences(k: int) -> Iterator[tuple[str, Made]]:
    r, s, words = torch.randn, torch.optim, torch.arange(128 * k).reshape(4 * k, 32)
    for name, dropout in (("transformer", 0.0), ("dropout", 0.1)):
        layer = nn.TransformerEncoderLayer(64, 4, 256, dropout=dropout, batch_first=True)
        yield name, step(layer, s.Adam, r(4 * k, 48, 64), r(4 * k, 48, 64))
    wide = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    yield "rows", step(wide, s.Adam, r(8 * k, 64, 64), r(8 * k, 64, 64))
    yield "lstm", step(First(nn.LSTM(32, 48, batch_first=True)), s.Adam, r(8 * k, 24, 32), r(8 * k, 24, 48))
    yield "two grus", step(First(nn.GRU(32, 32, num_layers=2)), s.SGD, r(20, 8 * k, 32), r(20, 8 * k, 32))
    yield "long attention", forward(Attends(32, 2), r(1, 512 * k, 32))
    yield "heads", step(SelfAttention(48, 4), s.Adam, r(4 * k, 40, 48), r(4 * k, 40, 48))
    model = nn.Sequential(nn.Embedding(2000, 32), GPTBlock(32, 4), nn.Linear(32, 2000))
    yield "words", step(model, s.Adam, words * 37 % 2000, words * 41 % 2000, loss=_labels)
    yield "labels", step(nn.Linear(32, 8000), s.SGD, r(64 * k, 32), torch.arange(64 * k) * 119, loss=F.cross_entropy)
    bags = torch.arange(512 * k).reshape(64 * k, 8) * 37 % 3000
    yield "bags", step(nn.Sequential(nn.EmbeddingBag(3000, 32), nn.Linear(32, 4)), s.Adam, bags, r(64 * k, 4))
    yield "checkpointed", Made(_checkpointed(64), (r(40, 16 * k, 64),))


def harder(k: int) -> Iterator[tuple[str, Made]]:
    """name -> program, all at size number `k`."""
    torch.manual_seed(0)
    r = torch.randn
    yield from _of_images(k)
    yield from _of_sequences(k)
    x = r(64 * k, 256)
    yield "picked", Made(lambda x: (x.gather(-1, x.argsort(-1, descending=True)), x.median(-1)[0]), (x,))
    rows = r(256 * k, 256)
    yield "sorted", Made(lambda x: (x.topk(8, -1), x.sort(0)[0]), (rows,))
    count = torch.arange(4096 * k).reshape(64 * k, 64) % 50
    yield "counts", Made(lambda x: (torch.bincount(x.flatten(), minlength=50), (x[..., None] == 7).sum(0)), (count,))
    waves = _gradients(lambda x, w: torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(w)).square().mean())
    yield "filtered", Made(waves, (r(32 * k, 512), r(512)))
    eye = torch.eye(96 * k)
    roots = _gradients(lambda x: torch.linalg.cholesky(x @ x.mT + 100 * eye).diagonal().log().sum())
    yield "roots", Made(roots, (r(96 * k, 96 * k),))
    solved = _gradients(lambda a, b: torch.linalg.solve(a + 30 * eye, b).square().sum())
    yield "solved", Made(solved, (r(96 * k, 96 * k), r(96 * k, 8)))
    yield "many solved", Made(torch.linalg.solve, (r(16 * k, 24, 24) + 9 * torch.eye(24), r(16 * k, 24, 3)))
    yield "triangles", Made(lambda a: torch.linalg.qr(a)[1].tanh(), (r(256 * k, 48),))
    sums = _gradients(lambda x: x.cumsum(0).tanh().cumsum(1).logcumsumexp(-1).sum())
    yield "sums", Made(sums, (r(128 * k, 128),))
    yield "accumulated", Made(_accumulated(mlp(64, 3, 8), 4), (r(256 * k, 64), r(256 * k, 8)))
    yield "halves", Made(_halved(mlp(128, 3, 8)), (r(256 * k, 128), r(256 * k, 8)))
    yield "of each", Made(_of_each(mlp(16, 1, 4)), (r(64 * k, 16), r(64 * k, 4)))
