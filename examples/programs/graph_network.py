"""A graph convolution over a list of edges: degrees by `scatter_add_`, messages by `index_add`, maxima by reduction."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(4)


class Convolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Linear(inputs, outputs, bias=False)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x, edges):
        start, end = edges
        degree = torch.zeros(x.size(0)).scatter_add_(0, end, torch.ones(end.numel()))
        norm = torch.where(degree > 0, degree.rsqrt(), 0.0)
        x = self.weight(x)
        return torch.zeros_like(x).index_add(0, end, x[start] * (norm[start] * norm[end])[:, None]) + self.bias


x = torch.randn(5, 3)
edges = torch.tensor([[0, 1, 2, 3, 3, 4], [1, 0, 3, 2, 1, 0]])
labels = torch.tensor([0, 1, 0, 1, 1])
first, second = Convolution(3, 4), Convolution(4, 2)
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.05, weight_decay=5e-4)


def step(x, edges, labels):
    optimizer.zero_grad()
    logits = second(first(x, edges).relu(), edges)
    loss = F.nll_loss(logits.log_softmax(1), labels)
    loss.backward()
    optimizer.step()
    return loss, (logits.argmax(1) == labels).float().mean()


for _ in range(6):
    loss, right = step(x, edges, labels)
    print(f"{loss.item():.4f} {right.item():.2f}")
with torch.no_grad():
    start, end = edges
    at = end[:, None].expand(-1, 3)
    print(torch.zeros(5, 3).scatter_reduce(0, at, x[start], "amax", include_self=False))
    print(torch.sparse_coo_tensor(edges, torch.ones(6), (5, 5)).t() @ x)
