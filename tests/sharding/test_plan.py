"""`graphc.plan` compares strategies, and proposes how to split the parameters of each kind of layer."""

from __future__ import annotations

from typing import Any

import pytest

import eager as torch
import graphc
from eager import nn
from graphc.ir import Graph
from graphc.sharding import P
from graphc.sharding.cluster import A100, Cluster

WIDTH, BATCH = 4096, 64
BY_HAND = {"*.up.weight": P("model"), "*.up.bias": P("model"), "*.down.weight": P(None, "model")}


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        return x + self.down(self.up(x).relu())


@pytest.fixture(scope="module")
def step() -> Graph:
    with torch.device("meta"):
        model = nn.ModuleDict({"layers": nn.Sequential(Layer(), Layer())})
        x = torch.zeros(BATCH, WIDTH)
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def step(x: Any, parameters: dict[str, Any], moments: dict[str, Any]) -> Any:
        leaves = {name: p.detach().requires_grad_() for name, p in parameters.items()}
        loss = torch.func.functional_call(model["layers"], {k.partition(".")[2]: p for k, p in leaves.items()}, (x,))
        grads = dict(zip(leaves, torch.autograd.grad(loss.square().mean(), [*leaves.values()]), strict=True))
        moments = {name: 0.9 * m + grads[name] for name, m in moments.items()}
        return {name: p - moments[name] for name, p in parameters.items()}, moments

    return graphc.trace(step, x, parameters, {**parameters})


def test_rules_are_proposed_for_all_layers_together(step: Graph):
    found = graphc.plan(step, A100, batch=("x",), tensor_parallel="auto")
    by_hand = graphc.plan(step, A100, batch=("x",), tensor_parallel=BY_HAND)
    assert found.best.simulation.seconds <= by_hand.best.simulation.seconds
    assert "tensor parallel" in found.best.name
    rules = found.best.tensor_parallel
    assert rules["*.layers.*.up.weight"] == rules["*.layers.*.up.bias"] == P("model")
    assert rules["*.layers.*.down.weight"] == P(None, "model")
    assert "*.layers.*.up.weight: columns; whole, a step would take" in str(found)


@pytest.mark.parametrize("cluster", [A100, A100._replace(devices=4, link=1e9, latency=1e-3)])
def test_what_is_proposed_is_no_slower_than_nothing(step: Graph, cluster: Cluster):
    found = graphc.plan(step, cluster, batch=("x",), tensor_parallel="auto")
    nothing = graphc.plan(step, cluster, batch=("x",), tensor_parallel={"no such name": P()})
    whole = {c.name: c.simulation.seconds for c in nothing.candidates}
    for c in found.candidates:
        if c.name.startswith("data parallel"):
            assert c.simulation.seconds <= 1.01 * whole[c.name], c
