"""An actor and a critic in a corridor: sampled actions, discounted returns, the policy gradient with a baseline."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
LENGTH = 5


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(LENGTH, 16)
        self.actor, self.critic = nn.Linear(16, 2), nn.Linear(16, 1)

    def forward(self, x):
        h = F.relu(self.body(x))
        return self.actor(h).log_softmax(-1), self.critic(h).squeeze(-1)


agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=0.02)


def play():
    place, states, actions, rewards = 0, [], [], []
    while place < LENGTH - 1 and len(actions) < 12:
        state = F.one_hot(torch.tensor(place), LENGTH).float()
        with torch.no_grad():
            action = torch.multinomial(agent(state)[0].exp(), 1).item()
        place = max(0, place + (1 if action else -1))
        states.append(state)
        actions.append(action)
        rewards.append(1.0 if place == LENGTH - 1 else -0.1)
    return torch.stack(states), torch.tensor(actions), rewards


def learn(states, actions, returns):
    optimizer.zero_grad()
    log_policy, values = agent(states)
    advantage = returns - values.detach()
    chosen = log_policy.gather(1, actions.unsqueeze(1)).squeeze(1)
    entropy = -(log_policy.exp() * log_policy).sum(1).mean()
    loss = -(chosen * advantage).mean() + F.smooth_l1_loss(values, returns) - 0.01 * entropy
    loss.backward()
    optimizer.step()
    return loss


for episode in range(9):
    states, actions, rewards = play()
    returns, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + 0.95 * total
        returns.insert(0, total)
    loss = learn(states, actions, torch.tensor(returns))
    if episode % 3 == 2:
        print(f"episode {episode}: {len(actions)} steps, return {returns[0]:.4f}, loss {loss.item():.4f}")
