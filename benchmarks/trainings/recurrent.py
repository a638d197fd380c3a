"""Recurrent nets by module, by cell, by hand and by scan. JAX scans, but where the name says that both are unrolled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

import eager as torch
import graphc
from eager import nn

from .layers import cross_entropy, linear
from .training import Training, floats, labels, matrix, own

F = nn.functional


def gates(module: nn.Module, suffix: str = "") -> dict[str, Any]:
    """The four parameters of a cell, or of the layer with that suffix; weights as (in, out)."""
    return {
        "wx": own(getattr(module, f"weight_ih{suffix}")).T.copy(),
        "wh": own(getattr(module, f"weight_hh{suffix}")).T.copy(),
        "bx": own(getattr(module, f"bias_ih{suffix}")),
        "bh": own(getattr(module, f"bias_hh{suffix}")),
    }


def rnn_cell(p: Any, h: Any, x: Any) -> Any:
    h = jnp.tanh(x @ p["wx"] + p["bx"] + h @ p["wh"] + p["bh"])
    return h, h


def gru_cell(p: Any, h: Any, x: Any) -> Any:
    xr, xz, xn = jnp.split(x @ p["wx"] + p["bx"], 3, axis=-1)
    hr, hz, hn = jnp.split(h @ p["wh"] + p["bh"], 3, axis=-1)
    z = jax.nn.sigmoid(xz + hz)
    h = (1 - z) * jnp.tanh(xn + jax.nn.sigmoid(xr + hr) * hn) + z * h
    return h, h


def lstm_cell(p: Any, state: Any, x: Any) -> Any:
    h, c = state
    i, f, g, o = jnp.split(x @ p["wx"] + p["bx"] + h @ p["wh"] + p["bh"], 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (h, c), h


def layer(cell: Callable[..., Any], p: Any, start: Any, xs: Any) -> Any:
    """All states of a layer over xs of (steps, batch, features)."""
    return lax.scan(lambda state, x: cell(p, state, x), start, xs)[1]


def zeros(xs: Any, p: Any) -> Any:
    return jnp.zeros((xs.shape[1], p["wh"].shape[0]))


class Last(nn.Module):
    """A recurrent layer, and a linear one on its last output."""

    def __init__(self, recurrent: nn.Module, size: int, classes: int):
        super().__init__()
        self.recurrent, self.head = recurrent, nn.Linear(size, classes)

    def forward(self, xs: torch.Tensor) -> torch.Tensor:
        output, _ = self.recurrent(xs)
        return self.head(output[-1])


def gru() -> Training:
    """nn.GRU of 64 units, 24 steps of 32 features, batch 32."""
    model = Last(nn.GRU(32, 64), 64, 10)

    def jax_loss(p: Any, xs: Any, y: Any) -> Any:
        hs = layer(gru_cell, p["gru"], zeros(xs, p["gru"]), xs)
        return cross_entropy(linear(p["head"], hs[-1]), y)

    return Training(
        model,
        lambda x, y: F.cross_entropy(model(x), y),
        (floats(24, 32, 32), labels(10, 32)),
        {"gru": gates(model.recurrent, "_l0"), "head": matrix(model.head)},
        jax_loss,
    )


def lstm_module() -> Training:
    """nn.LSTM of two layers of 64 units, 24 steps of 32 features, batch 32."""
    model = Last(nn.LSTM(32, 64, num_layers=2), 64, 10)

    def jax_loss(p: Any, xs: Any, y: Any) -> Any:
        for gated in p["layers"]:
            xs = layer(lstm_cell, gated, (zeros(xs, gated),) * 2, xs)
        return cross_entropy(linear(p["head"], xs[-1]), y)

    return Training(
        model,
        lambda x, y: F.cross_entropy(model(x), y),
        (floats(24, 32, 32), labels(10, 32)),
        {"layers": [gates(model.recurrent, f"_l{k}") for k in range(2)], "head": matrix(model.head)},
        jax_loss,
    )


class Cells(nn.Module):
    """An nn.LSTMCell in a loop of Python."""

    def __init__(self, features: int, size: int, classes: int):
        super().__init__()
        self.size = size
        self.cell, self.head = nn.LSTMCell(features, size), nn.Linear(size, classes)

    def forward(self, xs: torch.Tensor) -> torch.Tensor:
        h, c = torch.zeros(xs.shape[1], self.size), torch.zeros(xs.shape[1], self.size)
        for x in xs:
            h, c = self.cell(x, (h, c))
        return self.head(h)


def lstm_cells() -> Training:
    """24 steps of 64 units, 32 features, batch 32."""
    model = Cells(32, 64, 10)

    def jax_loss(p: Any, xs: Any, y: Any) -> Any:
        hs = layer(lstm_cell, p["cell"], (zeros(xs, p["cell"]),) * 2, xs)
        return cross_entropy(linear(p["head"], hs[-1]), y)

    return Training(
        model,
        lambda x, y: F.cross_entropy(model(x), y),
        (floats(24, 32, 32), labels(10, 32)),
        {"cell": gates(model.cell), "head": matrix(model.head)},
        jax_loss,
    )


class CharRNN(nn.Module):
    """An embedding, an nn.RNN, and logits of the next character at each step."""

    def __init__(self, characters: int, size: int):
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(characters, 32), nn.RNN(32, size, batch_first=True)
        self.head = nn.Linear(size, characters)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        output, _ = self.rnn(self.embedding(text))
        return self.head(output)


def char_rnn() -> Training:
    """64 characters, 128 units, 16 texts of 32."""
    characters = 64
    model = CharRNN(characters, 128)

    def loss(text: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(model(text).reshape(-1, characters), following.reshape(-1))

    def jax_loss(p: Any, text: Any, following: Any) -> Any:
        xs = p["embedding"][text.T]
        hs = layer(rnn_cell, p["rnn"], zeros(xs, p["rnn"]), xs)
        return cross_entropy(linear(p["head"], hs), following.T)

    return Training(
        model,
        loss,
        (labels(characters, 16, 32), labels(characters, 16, 32)),
        {"embedding": own(model.embedding.weight), "rnn": gates(model.rnn, "_l0"), "head": matrix(model.head)},
        jax_loss,
    )


class LSTM(nn.Module):
    """One LSTM layer by hand, over x of (steps, batch, features), and a linear layer on the last state."""

    def __init__(self, features: int, size: int, classes: int, rolled: bool):
        super().__init__()
        self.wx = nn.Parameter(torch.randn(features, 4 * size) / features**0.5)
        self.wh = nn.Parameter(torch.randn(size, 4 * size) / size**0.5)
        self.b = nn.Parameter(torch.zeros(4 * size))
        self.head = nn.Linear(size, classes)
        self.size, self.rolled = size, rolled

    def cell(self, state: Any, x: torch.Tensor) -> Any:
        h, c = state
        i, f, g, o = (x @ self.wx + h @ self.wh + self.b).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return (o.sigmoid() * c.tanh(), c), None

    def forward(self, xs: torch.Tensor) -> torch.Tensor:
        state = (torch.zeros(xs.shape[1], self.size), torch.zeros(xs.shape[1], self.size))
        if self.rolled:
            state, _ = graphc.scan(self.cell, state, xs)
        else:
            for x in xs:
                state, _ = self.cell(state, x)
        return self.head(state[0])


def lstm(steps: int, rolled: bool) -> Training:
    """128 units, 64 features, batch 32."""
    model = LSTM(64, 128, 10, rolled)

    def jax_loss(p: Any, xs: Any, y: Any) -> Any:
        def cell(state: Any, x: Any) -> Any:
            h, c = state
            i, f, g, o = jnp.split(x @ p["wx"] + h @ p["wh"] + p["b"], 4, axis=1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        state = (zeros(xs, p),) * 2
        if rolled:
            state, _ = lax.scan(cell, state, xs)
        else:
            for t in range(steps):
                state, _ = cell(state, xs[t])
        return cross_entropy(linear(p["head"], state[0]), y)

    return Training(
        model,
        lambda x, y: F.cross_entropy(model(x), y),
        (floats(steps, 32, 64), labels(10, 32)),
        {"wx": own(model.wx), "wh": own(model.wh), "b": own(model.b), "head": matrix(model.head)},
        jax_loss,
    )


TRAININGS: dict[str, Callable[[], Training]] = {
    "GRU module x24": gru,
    "LSTM module, two layers, x24": lstm_module,
    "LSTM cells x24": lstm_cells,
    "char-RNN x32": char_rnn,
    "LSTM unrolled x16": lambda: lstm(16, rolled=False),
    "LSTM scan x64": lambda: lstm(64, rolled=True),
}
