"""A variational autoencoder."""

import eager as torch
from eager import Tensor, nn
from eager.nn import functional as F
from eager.optim import Adam


class VAE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(784, 64)
        self.mean, self.log_variance = nn.Linear(64, 8), nn.Linear(64, 8)
        self.decoder = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 784), nn.Sigmoid())

    def reparameterize(self, mean: Tensor, log_variance: Tensor) -> Tensor:
        std = torch.exp(0.5 * log_variance)
        return mean + torch.randn_like(std) * std

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = F.relu(self.encoder(x.view(-1, 784)))
        mean, log_variance = self.mean(h), self.log_variance(h)
        return self.decoder(self.reparameterize(mean, log_variance)), mean, log_variance


def loss_of(found: Tensor, x: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    bce = F.binary_cross_entropy(found, x.view(-1, 784), reduction="sum")
    return bce - 0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())


model = VAE()
optimizer = Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.99))
x = torch.rand(4, 1, 28, 28)
found, mean, log_variance = model(x)
loss_of(found, x, mean, log_variance).backward()
optimizer.step()
print(torch.randn_like(x, dtype=torch.float64).std(unbiased=False), x.var(dim=0, keepdim=True).shape)
loss_of(found, x, mean)  # error: reportCallIssue
Adam(model.parameters(), lr="1e-3")  # error: reportArgumentType
Adam(model, lr=1e-3)  # error: reportArgumentType
model.reparameterize(1.0, mean)  # error: reportArgumentType
torch.sum(x, dims=0)  # error: reportCallIssue
loss_of(found, x, mean, log_variance).item().backward()  # error: reportAttributeAccessIssue
