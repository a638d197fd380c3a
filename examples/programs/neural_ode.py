"""A neural differential equation: the vector field of a spiral, learned through a Runge-Kutta integrator."""

import torch
from torch import nn

torch.manual_seed(0)
field = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(field.parameters(), lr=0.02)
true = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
start = torch.tensor([[2.0, 0.0]])


def integrate(f, state, steps=8, h=0.1):
    states = []
    for _ in range(steps):
        k1 = f(state)
        k2 = f(state + h / 2 * k1)
        k3 = f(state + h / 2 * k2)
        k4 = f(state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        states.append(state)
    return torch.stack(states)


target = integrate(lambda s: s @ true.T, start)


def step():
    optimizer.zero_grad()
    loss = (integrate(field, start) - target).abs().mean()
    loss.backward()
    nn.utils.clip_grad_norm_(field.parameters(), 1.0)
    optimizer.step()
    return loss


for k in range(12):
    loss = step()
    if k % 4 == 3:
        print(f"{k}: {loss.item():.5f}")
print(integrate(field, start)[-1])
