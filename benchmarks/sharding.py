"""What the simulator predicts for a training step of GPT-2 1.5B, by strategy: `python -m benchmarks.sharding [layers]`.

The model has no weights: it is traced on the meta device. Nothing here is a measurement.
"""

from __future__ import annotations

import sys
from typing import Any

import eager as torch
import graphc
from eager.nn import functional as F
from graphc.ir import Graph
from graphc.sharding import A100, P
from graphc.sharding.planning import Plan

LAYERS, WIDTH, HEADS, WORDS, LENGTH = 48, 1600, 25, 50304, 1024
TENSOR_PARALLEL: dict[str, Any] = {
    **{f"*.{name}.weight": P("model") for name in ("query", "key", "value", "up")},
    **{f"*.{name}.bias": P("model") for name in ("query", "key", "value", "up")},
    **{f"*.{name}.weight": P(None, "model") for name in ("out", "down")},
}


class Block(torch.nn.Module):
    """Attention and two layers, each after a normalization."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.query, self.key, self.value, self.out = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        batch, length, _ = x.shape
        n = self.first(x)
        q, k, v = (
            layer(n).view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.second(x))))


class GPT(torch.nn.Module):
    """GPT-2; the loss of predicting `y`."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.words, self.places = torch.nn.Embedding(WORDS, WIDTH), torch.nn.Embedding(LENGTH, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(layers))
        self.last = torch.nn.LayerNorm(WIDTH)

    def forward(self, i: Any, y: Any) -> Any:
        x = self.words(i) + self.places.weight
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy((self.last(x) @ self.words.weight.T).flatten(0, 1), y.flatten())


def step_graph(layers: int, batch: int) -> Graph:
    """A step with Adam: (i, y, parameters, both moments) -> the loss, and all that is new, by name."""
    with torch.device("meta"):
        model = GPT(layers)
        i = torch.zeros(batch, LENGTH, dtype=torch.long)
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def step(i: Any, y: Any, parameters: dict[str, Any], first: dict[str, Any], second: dict[str, Any]) -> Any:
        leaves = {name: p.detach().requires_grad_() for name, p in parameters.items()}
        loss = torch.func.functional_call(model, leaves, (i, y))
        grads = dict(zip(leaves, torch.autograd.grad(loss, [*leaves.values()]), strict=True))
        first = {name: 0.9 * m + 0.1 * grads[name] for name, m in first.items()}
        second = {name: 0.95 * v + 0.05 * grads[name] ** 2 for name, v in second.items()}
        new = {name: p - 1e-4 * first[name] / (second[name].sqrt() + 1e-8) for name, p in parameters.items()}
        return loss, new, first, second

    return graphc.trace(step, i, i, parameters, {**parameters}, {**parameters})


def predicted(layers: int, devices: int) -> Plan:
    """The strategies on `devices` A100, with one sequence for each."""
    graph = step_graph(layers, devices)
    return graphc.plan(graph, A100._replace(devices=devices), batch=("i", "y"), tensor_parallel=TENSOR_PARALLEL)


if __name__ == "__main__":
    for devices in (8, 64):
        print(f"{devices} devices, {devices} sequences of {LENGTH} words:")
        print(predicted(int(sys.argv[1]) if len(sys.argv) > 1 else LAYERS, devices))
