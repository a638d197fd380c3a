"""What a library does: type variables, mixed inputs, functions of functions, state dicts and devices."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

import eager as torch
from eager import Tensor, nn
from eager.func import functional_call, grad, jacrev, vmap
from eager.nn import Module, ModuleDict, ModuleList, Parameter

M = TypeVar("M", bound=Module)


def frozen(module: M) -> M:
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    return module.eval()


def loaded(path: Path, module: M, strict: bool = True) -> tuple[M, Sequence[str]]:
    state: Mapping[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    report = module.load_state_dict(OrderedDict(state), strict=strict)
    return module, report.missing_keys


def as_tensor(x: Tensor | np.ndarray | float | list[float]) -> Tensor:
    if isinstance(x, Tensor):
        return x
    return torch.from_numpy(x) if isinstance(x, np.ndarray) else torch.as_tensor(x, dtype=torch.float32)


class Mixture(Module):
    weights: Tensor

    def __init__(self, experts: int, make: Callable[[], Module]) -> None:
        super().__init__()
        self.experts = ModuleList(make() for _ in range(experts))
        self.heads = ModuleDict({"a": nn.Linear(2, 1), "b": nn.Identity()})
        self.register_buffer("weights", torch.ones(experts) / experts)
        self.bias = Parameter(torch.zeros(1))

    def forward(self, x: Tensor, head: str = "a") -> Tensor:
        out = torch.stack([w * e(x) for w, e in zip(self.weights, self.experts, strict=True)]).sum(0)
        result: Tensor = self.heads[head](out) + self.bias
        return result


net = frozen(Mixture(2, lambda: nn.Linear(2, 2)))
print(net.weights.sum(), len(net.experts), dict(net.named_buffers()).keys(), net.bias.grad)
params = {name: p.detach() for name, p in net.named_parameters()}


def energy(params: dict[str, Tensor], x: Tensor) -> Tensor:
    out: Tensor = functional_call(net, params, (x,))
    return out.square().sum()


g = grad(energy)(params, torch.ones(2))
per = vmap(grad(energy), in_dims=(None, 0))(params, torch.ones(3, 2))
j = jacrev(torch.sin)(as_tensor([1.0, 2.0]))
array: np.ndarray = as_tensor(np.ones(3)).numpy()
print(g, per, j, array.mean(), as_tensor(2.0).double().to("cpu", torch.float16).tolist())
with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
    net.half().to(torch.device("cpu"))(torch.ones(1, 2))
frozen(3)  # error: reportArgumentType
net.experts[0:1].extend(3)  # error: reportArgumentType
as_tensor({"a": 1})  # error: reportArgumentType
grad(3)  # error: reportArgumentType
torch.load(3.5)  # error: reportArgumentType
