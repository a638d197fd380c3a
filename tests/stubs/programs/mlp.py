"""A multi-layer perceptron, by hand and with layers."""

import eager as torch
from eager import Tensor, nn, optim


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(4, width)
        self.second = nn.Linear(width, 2, bias=False)
        self.wrong = nn.Linear("4", width)  # error: reportArgumentType
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.drop(torch.relu(self.first(x))))


torch.manual_seed(0)
model = Net(8)
optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))
for epoch in range(3):
    optimizer.zero_grad()
    loss: Tensor = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    print(epoch, f"{loss.item():.3f}")

w = torch.randn(4, 2, requires_grad=True)
out = ((x @ w + 1.0) ** 2).mean(dim=0).sum()
out.backward()
if w.grad is not None:
    w.grad.zero_()
w.grad.zero_()  # error: reportOptionalMemberAccess
out.backwards()  # error: reportAttributeAccessIssue
torch.randn(4, 2, require_grad=True)  # error: reportCallIssue
print(torch.nosuch(x))  # error: reportAttributeAccessIssue
print(sum(p.numel() for p in model.parameters()), model.training, model.state_dict().keys())
for name, parameter in model.named_parameters():
    print(name, tuple(parameter.shape), parameter.requires_grad)
accuracy = (model(x).argmax(dim=1) == y).float().mean().item()
print(accuracy + 1)
