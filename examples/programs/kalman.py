"""A Kalman filter whose noise is learned: the likelihood of the observations, through the recursion."""

import math

import torch

torch.manual_seed(0)
transition = torch.tensor([[1.0, 0.1], [0.0, 1.0]])
observed = torch.cumsum(0.1 * torch.ones(15), 0) + 0.1 * torch.randn(15)
log_noise = torch.tensor([-3.0, -3.0], requires_grad=True)  # of the state and of the observation
optimizer = torch.optim.Adam([log_noise], lr=0.2)


def negative_log_likelihood(y):
    process, measurement = log_noise.exp()
    mean, covariance, total = torch.zeros(2), torch.eye(2), 0.0
    for value in y:
        mean = transition @ mean
        covariance = transition @ covariance @ transition.T + process * torch.eye(2)
        variance = covariance[0, 0] + measurement
        error = value - mean[0]
        gain = covariance[:, 0] / variance
        mean = mean + gain * error
        covariance = covariance - torch.outer(gain, covariance[0])
        total = total + 0.5 * (torch.log(2 * math.pi * variance) + error**2 / variance)
    return total, mean


for k in range(6):
    optimizer.zero_grad()
    loss, mean = negative_log_likelihood(observed)
    loss.backward()
    optimizer.step()
    print(f"{k} {loss.item():.4f} {mean[0].item():.4f} {mean[1].item():.4f}")
print(log_noise)
