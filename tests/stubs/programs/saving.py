"""Modules: parameters, buffers, hooks, states, initialization."""

import eager as torch
from eager import Tensor, nn


class Model(nn.Module):
    running: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(3, 3))
        self.register_buffer("running", torch.zeros(3), persistent=False)
        nn.init.xavier_uniform_(self.weight, gain=2.0)
        nn.init.zeros_(self.running)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.running


model = Model().to(torch.float64).train(True)
handle = model.register_forward_hook(lambda module, args, output: None)
handle.remove()
model.load_state_dict(model.state_dict(), strict=True)
print(model.weight.shape, [type(child).__name__ for child in model.children()], len(list(model.buffers())))
for module in model.modules():
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, mean=0.0, std=0.02)
model.apply(lambda module: None)
model.requires_grad_(False)
model.zero_grad(set_to_none=True)
with torch.no_grad():
    model.weight.copy_(torch.eye(3)).mul_(0.5)


@torch.no_grad()
def evaluate(model: nn.Module, x: Tensor) -> float:
    model.eval()
    return float(model(x).mean())


print(evaluate(model, torch.ones(2, 3, dtype=torch.float64)) + 1)
evaluate(model)  # error: reportCallIssue
evaluate(model, 3)  # error: reportArgumentType
nn.Parameter(torch.empty(3), grad=True)  # error: reportCallIssue
nn.init.xavier_uniform(self_weight=1)
nn.init.xavier_uniform_(model.weight, scale=2.0)  # error: reportCallIssue
nn.init.xavier_(model.weight)  # error: reportAttributeAccessIssue
model.register_buffer("b")  # error: reportCallIssue
model.weight.nosuch()  # error: reportAttributeAccessIssue
