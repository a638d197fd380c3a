"""A Gaussian process: kernel parameters by the marginal likelihood, then predictions with their deviations."""

import math

import torch

torch.manual_seed(0)
x = torch.linspace(-3, 3, 20).double().unsqueeze(1)
y = torch.sin(x).squeeze() + 0.1 * torch.randn(20).double()
log_scale = torch.zeros(3, dtype=torch.float64, requires_grad=True)  # length, amplitude, noise


def kernel(a, b):
    length, amplitude, _ = log_scale.exp()
    return amplitude * torch.exp(-0.5 * torch.cdist(a / length, b / length) ** 2)


def loss():
    covariance = kernel(x, x) + (log_scale[2].exp() + 1e-6) * torch.eye(20, dtype=torch.float64)
    factor = torch.linalg.cholesky(covariance)
    alpha = torch.cholesky_solve(y.unsqueeze(1), factor)
    return 0.5 * (y @ alpha).squeeze() + factor.diagonal().log().sum() + 10 * math.log(2 * math.pi)


optimizer = torch.optim.Adam([log_scale], lr=0.1)
for k in range(30):
    optimizer.zero_grad()
    value = loss()
    value.backward()
    optimizer.step()
    if k % 10 == 9:
        print(k, f"{value.item():.5f}")

with torch.no_grad():
    new = torch.tensor([[-1.0], [0.5], [4.0]], dtype=torch.float64)
    factor = torch.linalg.cholesky(kernel(x, x) + log_scale[2].exp() * torch.eye(20, dtype=torch.float64))
    mean = kernel(new, x) @ torch.cholesky_solve(y.unsqueeze(1), factor)
    reduced = torch.linalg.solve_triangular(factor, kernel(x, new), upper=False)
    deviation = (kernel(new, new).diagonal() - reduced.square().sum(0)).sqrt()
print(mean.squeeze(), deviation)
