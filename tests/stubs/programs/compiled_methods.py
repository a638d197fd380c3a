"""Compiled functions keep the signatures of what they compile; graphs, sessions and checks around them."""

from dataclasses import dataclass

import compare
import eager as torch
import graphc
from eager import Tensor, nn


@dataclass
class Batch:
    x: Tensor
    y: Tensor
    weight: float = 1.0


@graphc.compile
def loss(model_output: Tensor, batch: Batch, *, scale: float = 1.0) -> Tensor:
    return ((model_output - batch.y) ** 2).mean() * batch.weight * scale


@graphc.compile(backend="auto")
def both(x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    return x + 1, {"double": x * 2}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 1)

    @graphc.compile
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


net = Net()
batch = Batch(torch.ones(3, 2), torch.zeros(3, 1))
value = loss(net(batch.x), batch, scale=2.0)
plus, rest = both(batch.x)
print(value.item() + 1, plus.shape, rest["double"].sum())


def total_of(x: Tensor) -> Tensor:
    return x.exp().sum()


def running(c: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    return c + x, c


graph = graphc.trace(total_of, batch.x)
gradient = graphc.gradients(graph, wrt=["x"])
run = graphc.lower(graphc.optimize(gradient))
print(len(graph.nodes), graphc.explain(graphc.optimize(graph)), run)
report = compare.check(both, batch.x)
print(report.ok and str(report.verdict))
total, _ = graphc.scan(running, torch.zeros(2), batch.x)
print(total, graphc.cond(value > 0, torch.exp, torch.neg, value))
loss(net(batch.x))  # error: reportCallIssue
loss(net(batch.x), batch, scales=2.0)  # error: reportCallIssue
both(batch)  # error: reportArgumentType
plus.doubled  # error: reportAttributeAccessIssue
graph.nodez  # error: reportAttributeAccessIssue
