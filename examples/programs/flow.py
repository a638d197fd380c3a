"""A normalizing flow of coupling layers, trained by exact likelihood, with a base and transforms of distributions."""

import torch
from torch import nn
from torch.distributions import AffineTransform, ExpTransform, Independent, Normal, TransformedDistribution

torch.manual_seed(1)


class Coupling(nn.Module):
    def __init__(self, kept):
        super().__init__()
        self.register_buffer("kept", torch.tensor(kept))
        self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 4))

    def forward(self, x):
        scale, shift = self.net(x * self.kept).chunk(2, -1)
        scale = torch.tanh(scale) * (1 - self.kept)
        return x * scale.exp() + shift * (1 - self.kept), scale.sum(-1)


flow = nn.ModuleList([Coupling([1.0, 0.0]), Coupling([0.0, 1.0]), Coupling([1.0, 0.0])])
base = Independent(Normal(torch.zeros(2), torch.ones(2)), 1)
optimizer = torch.optim.Adam(flow.parameters(), lr=0.01)
points = torch.randn(32, 2) * torch.tensor([0.5, 2.0])


def step(x):
    optimizer.zero_grad()
    z, volume = x, 0.0
    for layer in flow:
        z, grown = layer(z)
        volume = volume + grown
    loss = -(base.log_prob(z) + volume).mean()
    loss.backward()
    optimizer.step()
    return loss


for _ in range(6):
    print(f"{step(points).item():.4f}")
positive = TransformedDistribution(base, [AffineTransform(1.0, 2.0), ExpTransform()])
print(positive.log_prob(torch.ones(2)), positive.rsample((2,)))
