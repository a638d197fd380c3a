"""torch.func, vmap, functional calls."""

import eager as torch
from eager import Tensor, func, nn

model = nn.Linear(3, 1)
parameters = dict(model.named_parameters())


def loss(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
    return func.functional_call(model, parameters, (x,)).pow(2).mean()


def cubes(v: Tensor) -> Tensor:
    return v.pow(3).sum()


x = torch.randn(8, 3)
print(func.grad(loss)(parameters, x), func.vmap(torch.dot)(x, x), torch.vmap(torch.sum)(x).shape)
value, pullback = func.vjp(torch.sin, x)
print(value.shape, pullback(x))
print(func.jacrev(torch.sin)(x), func.hessian(cubes)(x[0]))
func.grad()  # error: reportCallIssue
func.vmap(torch.dot, in_dim=0)  # error: reportCallIssue
func.jacobian(loss)  # error: reportAttributeAccessIssue
nn.Linear(3, 1, bias="no")  # error: reportArgumentType
