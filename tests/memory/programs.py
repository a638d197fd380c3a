"""Programs of different kinds, at two sizes each, that the model of memory is held against XLA's own figures with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import eager as torch
import eager.nn.functional as F
import graphc
from eager import nn

SIZES = (1, 3)  # what the length of a batch, or of a side, is multiplied by


class Made(NamedTuple):
    """A function, and its arguments."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]


def step(model: Any, optimizer: type, *batch: Any, loss: Callable[..., Any] = F.mse_loss) -> Made:
    """A whole training step: forward, backward and the optimizer's."""
    chosen = optimizer(model.parameters(), lr=1e-3)

    def training_step(*args: Any) -> Any:
        chosen.zero_grad()
        value = loss(model(*args[:-1]), args[-1])
        value.backward()
        chosen.step()
        return value

    return Made(training_step, batch)


def forward(model: Any, *args: Any) -> Made:
    """The model alone, without gradients."""

    def run(*given: Any) -> Any:
        with torch.no_grad():
            return model(*given)

    return Made(run, args)


def mlp(width: int, depth: int, out: int) -> nn.Module:
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(width, out))


class ResNetBlock(nn.Module):
    """Two convolutions with batch norm, and the input added."""

    def __init__(self, channels: int):
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        self.norm, self.norm2 = (nn.BatchNorm2d(channels) for _ in range(2))

    def forward(self, x: Any) -> Any:
        return F.relu(x + self.norm2(self.second(F.relu(self.norm(self.first(x))))))


class Attention(nn.Module):
    """Causal self-attention of several heads, written out."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.mix, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x: Any) -> Any:
        n, t, d = x.shape
        q, k, v = (a.view(n, t, self.heads, d // self.heads).transpose(1, 2) for a in self.mix(x).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) * (d // self.heads) ** -0.5
        scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, d))


class GPTBlock(nn.Module):
    """Attention and a feed-forward part, with layer norms and residuals."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.attention, self.norm, self.norm2 = Attention(width, heads), nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.norm(x))
        return x + self.mlp(self.norm2(x))


class UNet(nn.Module):
    """One level down and up, with a skip connection."""

    def __init__(self, channels: int):
        super().__init__()
        self.down, self.middle = nn.Conv2d(3, channels, 3, padding=1), nn.Conv2d(channels, 2 * channels, 3, padding=1)
        self.up, self.out = nn.ConvTranspose2d(2 * channels, channels, 2, 2), nn.Conv2d(2 * channels, 3, 3, padding=1)

    def forward(self, x: Any) -> Any:
        skip = F.relu(self.down(x))
        low = F.relu(self.middle(F.max_pool2d(skip, 2)))
        return self.out(torch.cat([skip, F.relu(self.up(low))], 1))


class Scanned(nn.Module):
    """A GRU cell over time by `graphc.scan`."""

    def __init__(self, width: int):
        super().__init__()
        self.cell = nn.GRUCell(width, width)

    def forward(self, xs: Any) -> Any:
        h = torch.zeros(xs.shape[1], xs.shape[2])

        def body(h: Any, x: Any) -> Any:
            new = self.cell(x, h)
            return new, new

        return graphc.scan(body, h, xs)[1]


def _cnn(channels: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(channels, channels, 3, padding=1),
        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10),
    )  # fmt: skip


def _gp(x: Any, y: Any) -> Any:
    k = torch.exp(-0.5 * torch.cdist(x, x) ** 2) + 0.1 * torch.eye(len(x))
    factor = torch.linalg.cholesky(k)
    alpha = torch.cholesky_solve(y[:, None], factor)
    return 0.5 * (y @ alpha[:, 0]) + factor.diagonal().log().sum()


def _gp_gradient(x: Any, y: Any) -> Any:
    x = x.detach().requires_grad_()
    _gp(x, y).backward()
    return x.grad


def _chain(x: Any) -> Any:
    y = x
    for _ in range(6):
        y = torch.sin(y) * 1.5 + x
    return y.sum(), (y * y).mean(0)


def _chain_gradient(x: Any) -> Any:
    x = x.detach().requires_grad_()
    _chain(x)[0].backward()
    return x.grad


def _ranked(x: Any) -> Any:
    values, places = x.sort(-1)
    return values.cumsum(-1), places, x.topk(5)[0]


def programs(k: int) -> Iterator[tuple[str, Made]]:
    """name -> program, all at size number `k`."""
    r, s = torch.randn, torch.optim
    torch.manual_seed(0)
    x, y = r(256 * k, 64), r(256 * k, 64)
    yield "mlp", forward(mlp(64, 4, 64), x)
    yield "mlp step", step(mlp(64, 4, 64), s.SGD, x, y)
    yield "mlp adam", step(mlp(64, 4, 64), s.Adam, x, y)
    yield "wide mlp adam", step(mlp(256, 3, 8), s.Adam, r(32 * k, 256), r(32 * k, 8))
    image = r(4 * k, 3, 32, 32)
    labels = torch.arange(4 * k) % 10
    yield "cnn", forward(_cnn(16), image)
    yield "cnn step", step(_cnn(16), s.SGD, image, labels, loss=F.cross_entropy)
    deep = r(2 * k, 16, 24, 24)
    yield "resnet block", forward(ResNetBlock(16).eval(), deep)
    yield "resnet step", step(ResNetBlock(16), s.SGD, deep, r(2 * k, 16, 24, 24))
    tokens = r(2 * k, 48, 64)
    yield "attention", forward(Attention(64, 4), tokens)
    yield "gpt block", forward(GPTBlock(64, 4), tokens)
    yield "gpt step", step(GPTBlock(64, 4), s.AdamW, tokens, r(2 * k, 48, 64))
    yield "gru", forward(Scanned(32), r(24, 16 * k, 32))
    yield "gru step", step(Scanned(32), s.SGD, r(24, 16 * k, 32), r(24, 16 * k, 32))
    words = torch.arange(512 * k).reshape(8 * k, 64) * 37 % 500
    yield "embedding", forward(nn.Embedding(500, 64), words)
    yield "embedding step", step(nn.Sequential(nn.Embedding(500, 64), nn.Linear(64, 8)), s.SGD, words, r(8 * k, 64, 8))
    yield "gp", Made(_gp, (r(96 * k, 4), r(96 * k)))
    yield "gp gradient", Made(_gp_gradient, (r(96 * k, 4), r(96 * k)))
    yield "ranks", Made(_ranked, (r(64 * k, 128),))
    yield "chain", Made(_chain, (r(128 * k, 256),))
    yield "chain gradient", Made(_chain_gradient, (r(128 * k, 256),))
    yield "unet", forward(UNet(8), r(2 * k, 3, 32, 32))
    yield "unet step", step(UNet(8), s.Adam, r(2 * k, 3, 32, 32), r(2 * k, 3, 32, 32))
    yield "convolved", Made(lambda a, b: torch.fft.irfft(torch.fft.rfft(a) * torch.fft.rfft(b)), (r(64 * k, 256),) * 2)
    parts = (r(4 * k, 64, 64), r(4 * k, 64, 64), r(4 * k, 64, 64))
    yield "weights", Made(lambda q, k, v: ((q @ k.mT / 8).softmax(-1) @ v).tanh().sum(), parts)
    square = r(128 * k, 128 * k) + 20 * torch.eye(128 * k)
    yield "solved", Made(lambda a, b: torch.linalg.solve(a.exp(), b), (square, r(128 * k, 4)))
    yield "covariance", Made(lambda a: ((a - a.mean(0)).T @ (a - a.mean(0))) / len(a), (r(256 * k, 96),))
