"""Optimizers and their groups, closures, states."""

import eager as torch
from eager import nn, optim

model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
groups = [
    {"params": list(model[0].parameters()), "lr": 1e-2},
    {"params": list(model[2].parameters())},
]
sgd = optim.SGD(groups, lr=1e-3, momentum=0.9, nesterov=True)
adamw = optim.AdamW(model.parameters(), weight_decay=0.01, amsgrad=True)
lbfgs = optim.LBFGS(model.parameters(), max_iter=5, line_search_fn="strong_wolfe")
named = optim.RMSprop(model.named_parameters(), alpha=0.9)
x, y = torch.randn(5, 3), torch.randn(5, 1)


def closure() -> torch.Tensor:
    lbfgs.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


loss = lbfgs.step(closure)
print(loss.item(), sgd.step(closure).item(), sgd.param_groups[0]["lr"])
adamw.load_state_dict(adamw.state_dict())
adamw.add_param_group({"params": [torch.zeros(3, requires_grad=True)]})
average = optim.swa_utils.AveragedModel(model)
average.update_parameters(model)
optim.SGD()  # error: reportCallIssue
optim.SGD(model.parameters(), learning_rate=0.1)  # error: reportCallIssue
optim.Adam(model.parameters(), betas=0.9)  # error: reportArgumentType
optim.Adamm(model.parameters())  # error: reportAttributeAccessIssue
sgd.step(3)  # error: reportCallIssue, reportArgumentType
sgd.zero_gradient()  # error: reportAttributeAccessIssue
sgd.step().item()  # error: reportAttributeAccessIssue
