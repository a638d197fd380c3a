"""Modules under `graphc.compile`, and what else carries attributes."""

from __future__ import annotations

import copy
from typing import Any

import eager as torch
from eager import nn
from tests.scenarios.harness import program

X = torch.tensor([1.0, 2.0, 3.0])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("seen", torch.zeros(()))
        self.scale = 2.0

    def forward(self, x, flag=True):
        self.seen += 1
        y = self.drop(self.lin(x)) * self.scale
        return y if flag else -y

    def helper(self, x):
        return self.lin(x)


@program
def modules(compile):
    net = Net()
    f = compile(net)
    found = [f(X), f(X, flag=False)]
    f.eval()
    found += [f(X), net.training, f.training]
    f.train()
    f.scale = 3.0
    found += [f(X), net.scale, f.helper(X), f.seen.clone(), len(list(f.parameters()))]
    with torch.no_grad():
        for p in f.parameters():
            p.zero_()
    return [*found, f(X), net.seen, isinstance(f, nn.Module)]


@program
def submodules_replaced_after_the_first_call(compile):
    net = Net().eval()
    f = compile(net)
    found = [f(X)]
    net.lin = nn.Linear(3, 3)
    found.append(f(X))
    f.lin = nn.Linear(3, 3, bias=False)
    found.append(f(X))
    net.lin.weight = nn.Parameter(torch.eye(3))
    found.append(f(X))
    net.forward = lambda x: x * 100
    return [*found, f(X)]


@program
def a_compiled_module_inside_another(compile):
    inner = compile(nn.Linear(3, 3))
    net = nn.Sequential(inner, nn.ReLU(), compile(nn.Linear(3, 2)))
    outer = compile(net)
    loss = outer(X).sum()
    loss.backward()
    return loss, [p.grad for p in net.parameters()], net(X), outer(X)


@program
def copies_of_compiled_modules_are_of_their_own(compile):
    f = compile(nn.Linear(3, 3))
    before = f(X)
    g = copy.deepcopy(f)
    with torch.no_grad():
        for p in g.parameters():
            p.fill_(1.0)
    return before, f(X), g(X), f(X)


@program
def state_dicts_load_into_compiled_modules(compile):
    a, b = nn.Linear(3, 3), compile(nn.Linear(3, 3))
    first = b(X)
    values = dict(zip(b.state_dict(), a.state_dict().values(), strict=True))
    b.load_state_dict(values)
    return first, b(X), a(X)


@program
def layers_in_lists_and_dicts(compile):
    layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
    named = nn.ModuleDict({"relu": nn.ReLU(), "tanh": nn.Tanh()})

    @compile
    def f(x, order):
        for layer, name in zip(layers, order, strict=False):
            x = named[name](layer(x))
        return x

    found = [f(X, ["relu", "tanh"]), f(X, ["tanh"]), f(X, ("tanh", "relu", "relu"))]
    layers.append(nn.Linear(3, 1))
    named["tanh"] = nn.Sigmoid()
    return [*found, f(X, ["relu", "tanh", "tanh", "relu"]), f(X, ["relu", "tanh"])]


@program
def one_function_on_many_instances(compile):
    class Layer:
        def __init__(self, k):
            self.k, self.w = k, torch.full((3,), float(k))

        @compile
        def step(self, x):
            self.w += x
            return self.w * self.k

    layers = [Layer(k) for k in range(5)]
    return [[layer.step(X) for layer in layers] for _ in range(3)], [layer.w for layer in layers]


@program
def tensor_subclass_and_parameters_as_arguments(compile):
    f = compile(lambda p, x: (p * x, isinstance(p, nn.Parameter), p.requires_grad))
    p = nn.Parameter(X.clone())
    y, *kinds = f(p, X)
    y.sum().backward()
    return y, kinds, p.grad, f(X, X), f(p.detach(), X)


@program
def attributes_of_functions(compile):
    @compile
    def f(x):
        helper.calls = getattr(helper, "calls", 0) + 1
        return x * helper.factor

    def helper():
        pass

    helper.factor = 2.0
    found: list[Any] = [f(X), f(X), f(X)]
    helper.factor = 3.0
    return [*found, f(X), helper.calls]
