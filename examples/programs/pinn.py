"""A physics-informed network: u'' = -sin(x) with u(0) = u(pi) = 0, by derivatives of the network in its input."""

import math

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
inside = torch.linspace(0, math.pi, 16).unsqueeze(1).requires_grad_()
ends = torch.tensor([[0.0], [math.pi]])


def residual():
    u = net(inside)
    (first,) = torch.autograd.grad(u.sum(), inside, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), inside, create_graph=True)
    return second + torch.sin(inside)


def step():
    optimizer.zero_grad()
    loss = residual().square().mean() + 10 * net(ends).square().mean()
    loss.backward()
    optimizer.step()
    return loss


for k in range(15):
    loss = step()
    if k % 5 == 4:
        print(f"step {k} loss {loss.item():.5f}")
print(net(torch.tensor([[math.pi / 2]])).item())
