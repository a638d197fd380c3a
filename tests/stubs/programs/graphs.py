"""Tracing, gradients, optimization, lowering."""

import eager as torch
import graphc
from eager import Tensor


def loss(w: Tensor, x: Tensor) -> Tensor:
    return torch.tanh(x @ w).pow(2).mean()


w, x = torch.randn(3, 1), torch.randn(5, 3)
graph = graphc.trace(loss, w, x)
print(graph, len(graph.nodes), [node.op.name for node in graph.nodes.values()])
gradient = graphc.gradients(graph, wrt=("w",), values=True)
better = graphc.optimize(gradient, level=2)
print(graphc.explain(better, details=True), graphc.mechanisms().keys())
executable = graphc.lower(better, device="cpu")
print(executable(w, x), executable.source)
print(graphc.codegen(better).splitlines()[0], graphc.stablehlo(better), len(graphc.export(better)))
for step in graphc.steps(graph):
    print(step)
graphc.trace(loss, w)  # error: reportCallIssue
graphc.trace(loss, w, 3)  # error: reportArgumentType
graphc.optimize(loss)  # error: reportArgumentType
graphc.optimize(graph, levels=2)  # error: reportCallIssue
graphc.lower()  # error: reportCallIssue
graph.node_count()  # error: reportAttributeAccessIssue
graphc.optimise(graph)  # error: reportAttributeAccessIssue
