"""graphc.compile keeps the parameters and the result of what it wraps."""

import eager as torch
import graphc
from eager import Tensor, nn


def f(x: Tensor, scale: float = 1.0) -> Tensor:
    return (x * scale).sum()


@graphc.compile
def g(x: Tensor, *, twice: bool = False) -> tuple[Tensor, int]:
    return x, 2 if twice else 1


@graphc.compile(strict=True, device="cpu")
def h(x: Tensor) -> Tensor:
    return x.exp()


class Trainer:
    @graphc.compile
    def step(self, x: Tensor) -> Tensor:
        return x * 2


x = torch.ones(3, requires_grad=True)
fast = graphc.compile(f, dynamic=True)
fast(x, scale=2.0).backward()
value, count = g(x, twice=True)
print(h(x).mean(), count + 1, value.shape, fast.explain(), fast.source, fast.graph.nodes)
print(Trainer().step(x).sum())
layer = graphc.compile(nn.Linear(3, 3))
print(layer(x), layer.in_features, layer.weight.grad)
fast(x, scal=2.0)  # error: reportCallIssue
fast("x")  # error: reportArgumentType
fast()  # error: reportCallIssue
g(x, True)  # error: reportCallIssue
h(x).nosuch()  # error: reportAttributeAccessIssue
graphc.compile(f, dynamics=True)  # error: reportCallIssue
Trainer().step(x, 3)  # error: reportCallIssue
fast.explained()  # error: reportAttributeAccessIssue
graphc.compiler(f)  # error: reportAttributeAccessIssue
text: str = fast(x)  # error: reportAssignmentType
