"""Training that is interrupted and resumed from a file: the second half is that of a run without the interruption."""

import os
import tempfile

import torch
from torch import nn

DATA = torch.Generator().manual_seed(5)
x, y = torch.randn(32, 4, generator=DATA), torch.randint(0, 3, (32,), generator=DATA)


def new():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, amsgrad=True)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)


def loss_of(model):
    return nn.functional.cross_entropy(model(x), y)


def train(model, optimizer, schedule, steps):
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def written_and_read(parts):
    with tempfile.TemporaryDirectory() as folder:
        torch.save(parts, os.path.join(folder, "checkpoint.pt"))
        return torch.load(os.path.join(folder, "checkpoint.pt"))


whole = train(*new(), 8)

model, optimizer, schedule = new()
halves = train(model, optimizer, schedule, 4)
parts = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}
saved = written_and_read({**parts, "random": torch.get_rng_state(), "step": 4})
model, optimizer, schedule = new()
model.load_state_dict(saved["model"])
optimizer.load_state_dict(saved["optimizer"])
schedule.load_state_dict(saved["schedule"])
torch.set_rng_state(saved["random"])
left = 8 - saved["step"]
del saved, parts  # what was loaded into the optimizer is the optimizer's
halves += train(model, optimizer, schedule, left)
print([round(loss, 5) for loss in whole])
print(halves == whole, optimizer.param_groups[0]["lr"])
