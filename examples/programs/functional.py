"""`torch.func`: gradients for each sample, an ensemble as one model, Jacobians, and a step of Gauss and Newton."""

import torch
from torch import nn
from torch.func import functional_call, grad, hessian, jacrev, jvp, stack_module_state, vmap

torch.manual_seed(0)
x, y = torch.randn(6, 3), torch.randn(6)
net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
parameters = dict(net.named_parameters())


def loss(parameters, x, y):
    return (functional_call(net, parameters, (x.unsqueeze(0),)).squeeze() - y) ** 2


each = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
print({name: tuple(g.shape) for name, g in each.items()})
print(each["2.bias"].squeeze())

nets = [nn.Linear(3, 2) for _ in range(3)]
weights, buffers = stack_module_state(nets)
print(vmap(lambda w: functional_call(nets[0], w, (x[0],)))({k: v.detach() for k, v in weights.items()}))


def f(v):
    return torch.stack([v[0] * v[1].sin(), v[1] ** 2 + v[2], v.prod()])


point = torch.tensor([1.0, 2.0, 3.0])
print(jacrev(f)(point))
print(hessian(lambda v: f(v).square().sum())(point))
print(jvp(f, (point,), (torch.ones(3),))[1])
jacobian = jacrev(f)(point)
print(point - torch.linalg.solve(jacobian, f(point)))
