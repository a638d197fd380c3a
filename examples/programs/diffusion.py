"""A denoising diffusion model of points: the noise is predicted, averaged weights sample."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(2)
STEPS = 10
beta = torch.linspace(1e-4, 0.2, STEPS)
alpha = torch.cumprod(1 - beta, 0)
net = nn.Sequential(nn.Linear(3, 16), nn.SiLU(), nn.Linear(16, 2))
average = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6)


def step(x, t, noise):
    optimizer.zero_grad()
    noisy = alpha[t, None].sqrt() * x + (1 - alpha[t, None]).sqrt() * noise
    loss = F.mse_loss(net(torch.cat([noisy, t[:, None] / STEPS], 1)), noise)
    loss.backward()
    optimizer.step()
    return loss


for _ in range(6):
    x = torch.randn(16, 2) * 0.1 + 1
    loss = step(x, torch.randint(0, STEPS, (16,)), torch.randn_like(x))
    schedule.step()
    average.update_parameters(net)
    print(f"{loss.item():.4f} {schedule.get_last_lr()[0]:.5f}")

with torch.inference_mode():
    x = torch.randn(3, 2)
    for t in reversed(range(STEPS)):
        noise = average(torch.cat([x, torch.full((3, 1), t / STEPS)], 1))
        x = (x - beta[t] / (1 - alpha[t]).sqrt() * noise) / (1 - beta[t]).sqrt()
        if t > 0:
            x += beta[t].sqrt() * torch.randn_like(x)
print(x)
