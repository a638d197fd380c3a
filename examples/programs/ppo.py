"""Proximal policy optimization of recorded steps: generalized advantages, clipped ratios, batches in random order."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical, kl_divergence

torch.manual_seed(3)
policy, value = nn.Linear(4, 2), nn.Linear(4, 1)
parameters = [*policy.parameters(), *value.parameters()]
optimizer = torch.optim.Adam(parameters, lr=0.01, eps=1e-5)
seen, reward, ended = torch.randn(12, 4), torch.randn(12), torch.zeros(12)
ended[5] = 1

with torch.no_grad():
    before = Categorical(logits=policy(seen))
    action = before.sample()
    likely = before.log_prob(action)
    worth = value(seen).squeeze(-1)
    advantage, running = torch.zeros(12), 0.0
    for t in reversed(range(12)):
        later = worth[t + 1] if t < 11 else 0.0
        error = reward[t] + 0.99 * later * (1 - ended[t]) - worth[t]
        advantage[t] = running = error + 0.99 * 0.95 * (1 - ended[t]) * running
    gain = advantage + worth
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)


def step(seen, action, likely, advantage, gain):
    optimizer.zero_grad()
    now = Categorical(logits=policy(seen))
    ratio = (now.log_prob(action) - likely).exp()
    surrogate = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
    loss = -surrogate + 0.5 * F.mse_loss(value(seen).squeeze(-1), gain) - 0.01 * now.entropy().mean()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 0.5)
    optimizer.step()
    return loss


for epoch in range(3):
    losses = [step(seen[i], action[i], likely[i], advantage[i], gain[i]).item() for i in torch.randperm(12).split(6)]
    print(f"epoch {epoch}: " + " ".join(f"{loss:.4f}" for loss in losses))
with torch.no_grad():
    print(action, kl_divergence(before, Categorical(logits=policy(seen))).mean())
