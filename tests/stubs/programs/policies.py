"""Distributions, generics and named results."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import eager as torch
from eager import Tensor, distributions, nn
from eager.distributions import Categorical, Independent, MultivariateNormal, Normal, kl_divergence


class Step(NamedTuple):
    observation: Tensor
    action: Tensor
    log_prob: Tensor


class Policy(nn.Module):
    def __init__(self, sizes: tuple[int, ...], continuous: bool = False) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for a, b in pairwise(sizes):
            layers += [nn.Linear(a, b), nn.Tanh()]
        self.body = nn.Sequential(*layers[:-1])
        self.scale = nn.Parameter(torch.zeros(sizes[-1]))
        self.continuous = continuous

    def forward(self, x: Tensor) -> distributions.Distribution:
        out = self.body(x)
        if self.continuous:
            return Independent(Normal(out, self.scale.exp()), 1)
        return Categorical(logits=out)

    def act(self, x: Tensor) -> Step:
        d = self.forward(x)
        a = d.sample()
        return Step(x, a, d.log_prob(a))


def episode(policy: Policy, length: int) -> Iterator[Step]:
    state = torch.zeros(4)
    for _ in range(length):
        yield policy.act(state)
        state = state + torch.randn_like(state)


policy = Policy((4, 8, 2))
steps = list(episode(policy, 3))
actions = torch.stack([s.action for s in steps])
loss: Tensor = -torch.stack([s.log_prob for s in steps]).mean()
loss.backward()
normal = MultivariateNormal(torch.zeros(2), torch.eye(2))
print(kl_divergence(normal, normal).item() + 1.0, normal.rsample((3,)).shape[0], actions.tolist())
values, indices = actions.float().topk(2)
top = actions.float().sort(descending=True)
print(values.sum() + top.values.sum(), top.indices.dtype, indices.argmax().item())
Policy("wide")  # error: reportArgumentType
normal.rsampel((3,))  # error: reportAttributeAccessIssue
steps[0].reward  # error: reportAttributeAccessIssue
top.place  # error: reportAttributeAccessIssue
Categorical(logit=torch.zeros(3))  # error: reportCallIssue
