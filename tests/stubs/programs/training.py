"""Hooks, custom optimizers, samplers and callbacks."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import eager as torch
from eager import Tensor, nn
from eager.optim import Optimizer
from eager.optim.lr_scheduler import LambdaLR, LRScheduler
from eager.utils.data import DataLoader, Dataset, Sampler


class Metric(Protocol):
    def __call__(self, prediction: Tensor, target: Tensor) -> float: ...


class Lion(Optimizer):
    def __init__(self, params: Iterable[Tensor], lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99)) -> None:
        super().__init__(params, {"lr": lr, "betas": betas})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                m: Tensor = state.setdefault("m", torch.zeros_like(p))
                p.add_(torch.sign(m * group["betas"][0] + p.grad), alpha=-group["lr"])
                m.mul_(group["betas"][1]).add_(p.grad, alpha=1 - group["betas"][1])
        return loss


class Pairs(Dataset[tuple[Tensor, int]]):
    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.full((3,), float(index)), index % 2


class Backwards(Sampler[int]):
    def __init__(self, size: int) -> None:
        self.size = size

    def __iter__(self):
        return iter(range(self.size - 1, -1, -1))

    def __len__(self) -> int:
        return self.size


features: dict[str, Tensor] = {}


def keep(name: str) -> Callable[[nn.Module, Any, Tensor], None]:
    def hook(module: nn.Module, args: Any, output: Tensor) -> None:
        features[name] = output.detach()

    return hook


def accuracy(prediction: Tensor, target: Tensor) -> float:
    return (prediction.argmax(1) == target).float().mean().item()


net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
handle = net[0].register_forward_hook(keep("first"))
optimizer = Lion(net.parameters(), lr=0.01)
scheduler: LRScheduler = LambdaLR(optimizer, lambda epoch: 0.9**epoch)
metric: Metric = accuracy
data = Pairs()
for x, y in DataLoader(data, batch_size=4, sampler=Backwards(len(data))):
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(metric(net(x), y), scheduler.get_last_lr()[0] + 1, features["first"].shape)
handle.remove()
handle.delete()  # error: reportAttributeAccessIssue
Lion(net.parameters(), rate=0.1)  # error: reportCallIssue
optimizer.step(closure=3)  # error: reportArgumentType
features["first"].detatch()  # error: reportAttributeAccessIssue
DataLoader(data, batchsize=3)  # error: reportCallIssue
