"""A U-Net that segments images, which are flipped and sheared at random: Dice and binary cross entropy."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(9)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.outer, self.norm = nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4)
        self.inner = nn.Conv2d(4, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.head = nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x):
        outer = F.relu(self.norm(self.outer(x)))
        inner = F.relu(self.inner(F.max_pool2d(outer, 2)))
        return self.head(torch.cat([outer, self.up(inner)], 1))


def augmented(x, y):
    if torch.rand(1) < 0.5:
        x, y = x.flip(-1), y.flip(-1)
    shear = torch.tensor([[1.0, 0.1, 0.0], [0.0, 1.0, 0.1]]).repeat(len(x), 1, 1)
    grid = F.affine_grid(shear, x.shape, align_corners=False)
    moved = F.grid_sample(x, grid, align_corners=False)
    return moved, F.grid_sample(y, grid, mode="nearest", align_corners=False)


model = UNet()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9)
images = torch.randn(2, 1, 8, 8)
masks = (images > 0).float()


def step(x, y):
    optimizer.zero_grad()
    logits = model(x)
    p = logits.sigmoid()
    dice = 1 - (2 * (p * y).sum() + 1) / (p.sum() + y.sum() + 1)
    loss = F.binary_cross_entropy_with_logits(logits, y) + dice
    loss.backward()
    optimizer.step()
    return loss


for _ in range(5):
    print(f"{step(*augmented(images, masks)).item():.4f}")
print(((model(images).sigmoid() > 0.5) == (masks > 0)).float().mean())
print(F.interpolate(images, scale_factor=0.5, mode="bilinear", antialias=True)[0, 0])
