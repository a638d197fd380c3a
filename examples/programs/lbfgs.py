"""Rosenbrock's valley in six dimensions by L-BFGS with a strong-Wolfe line search, and the Hessian at the end."""

import torch

x = torch.tensor([-1.2, 1.0, -0.5, 0.8, 1.1, 0.9], dtype=torch.float64, requires_grad=True)
optimizer = torch.optim.LBFGS([x], lr=1.0, max_iter=60, line_search_fn="strong_wolfe")


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


calls = 0


def closure():
    global calls
    calls += 1
    optimizer.zero_grad()
    value = rosenbrock(x)
    value.backward()
    return value


first = optimizer.step(closure).item()
print(f"{first:.4f} -> {rosenbrock(x).item():.4f}", calls > 20)
print(x.detach().round(decimals=4))
hessian = torch.autograd.functional.hessian(rosenbrock, x.detach())
print(torch.linalg.eigvalsh(hessian))
