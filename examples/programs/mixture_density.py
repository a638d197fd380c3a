"""A mixture density network: several answers to one question, as a mixture of normal distributions."""

import math

import torch
from torch import nn

torch.manual_seed(1)
t = torch.rand(64, 1)
x = t + 0.3 * torch.sin(2 * math.pi * t) + 0.05 * torch.randn(64, 1)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 9))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)


def loss(x, t):
    weight, mean, log_deviation = net(x).chunk(3, dim=1)
    deviation = log_deviation.exp()
    log_density = -0.5 * ((t - mean) / deviation) ** 2 - log_deviation - 0.5 * math.log(2 * math.pi)
    return -torch.logsumexp(weight.log_softmax(1) + log_density, dim=1).mean()


for k in range(12):
    optimizer.zero_grad()
    value = loss(x, t)
    value.backward()
    optimizer.step()
    schedule.step()
    if k % 4 == 3:
        print(f"{k} {value.item():.5f} lr {schedule.get_last_lr()[0]:.5f}")
print(net(torch.tensor([[0.5]])).softmax(1))
