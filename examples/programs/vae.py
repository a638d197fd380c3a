"""A variational autoencoder on bars: the reparameterized sample, and the divergence in closed form."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images = torch.zeros(8, 4, 4)
for k in range(4):
    images[k, k] = 1.0
    images[4 + k, :, k] = 1.0


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(16, 24), nn.ReLU())
        self.mean, self.log_variance = nn.Linear(24, 2), nn.Linear(24, 2)
        self.decoder = nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 16))

    def forward(self, x):
        h = self.encoder(x)
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        return self.decoder(z), mean, log_variance


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(images), batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(3))


def step(x):
    optimizer.zero_grad()
    logits, mean, log_variance = model(x)
    rebuilt = F.binary_cross_entropy_with_logits(logits, x.flatten(1), reduction="sum")
    divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum()
    loss = (rebuilt + divergence) / len(x)
    loss.backward()
    optimizer.step()
    return loss


for epoch in range(4):
    total = sum(step(x).item() for (x,) in loader)
    print(f"epoch {epoch}: {total / len(loader):.4f}")
print(torch.sigmoid(model.decoder(torch.zeros(1, 2))).view(4, 4))
