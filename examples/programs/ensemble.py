"""An ensemble trained as one: stacked states, `vmap` of the gradient of a functional call; then its disagreement."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

torch.manual_seed(6)
models = [nn.Sequential(nn.Linear(2, 4), nn.GELU(), nn.Linear(4, 1)) for _ in range(3)]
state, buffers = stack_module_state(models)
state = {name: value.detach() for name, value in state.items()}
skeleton = copy.deepcopy(models[0]).to("meta")
x, y = torch.randn(6, 2), torch.randn(6, 1)


def loss_of(parameters, buffers, x, y):
    return F.mse_loss(functional_call(skeleton, (parameters, buffers), (x,)), y)


def step(state, x, y):
    slopes, losses = vmap(grad_and_value(loss_of), in_dims=(0, 0, None, None))(state, buffers, x, y)
    return {name: value - 0.1 * slopes[name] for name, value in state.items()}, losses


for _ in range(4):
    state, losses = step(state, x, y)
    print(losses)
guesses = vmap(lambda one, x: functional_call(skeleton, one, x), in_dims=(0, None))(state, x)
print(guesses.mean(0).squeeze(), guesses.std(0).squeeze())
