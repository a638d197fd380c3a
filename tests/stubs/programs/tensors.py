"""What tensors do: indexing, shapes, dtypes, conversions, in-place methods."""

import numpy as np

import eager as torch
from eager import Tensor
from eager.types import Device, Number

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
device: Device = "cpu"
number: Number = x.sum().item()
print(x[0], x[0, 1], x[:, None, ...], x[x > 1], x[torch.tensor([0, 1])], x[[0, 1], [1, 0]], x[-1:].T)
x[0] = 5
x[:, 1] += torch.ones(2)
x[x > 3] = 0.0
print(2 * x + x / 3 - (1 - x) ** 2 // 2 % 3, -x, abs(x), ~(x > 1), (x > 1) & (x < 3), x == 1, 2.0**x, x @ x)
x += 1
x.add_(1, alpha=2).mul_(2).clamp_(min=0.0, max=3).sqrt_()
rows, columns = x.shape
print(rows + columns, x.size(0) + 1, x.shape.numel(), len(x), x.ndim, x.dtype is torch.float32, x.device.type)
array: np.ndarray = x.numpy()
print(torch.from_numpy(array).to(torch.int64).tolist(), x.to("cpu", dtype=torch.float64), x.type(), x.bool().all())
print(x.max(), x.max(dim=1).values, x.max(1)[1], torch.max(x, x), x.sort(descending=True).indices, x.median(0))
print(x.reshape(4), x.reshape((4, 1)), x.view(-1), x.permute(1, 0), x.expand(3, -1, -1), x.repeat(2, 2), x.flatten())
print(
    torch.stack([x, x]).unbind(0)[0], torch.cat((x, x), dim=-1), x.chunk(2, dim=1)[0], x.split([1, 1])[1], *x.unbind()
)
print(
    torch.where(x > 1, x, 0.0), torch.where(x > 1)[0], x.where(x > 1, torch.zeros(())), x.nonzero(), x.unique().numel()
)
print(
    torch.zeros_like(x), x.new_zeros(2, 3), torch.full((2,), 1.5), torch.eye(3)[0], torch.ones(2, 3, dtype=torch.bool)
)
print(x.gather(1, torch.zeros(2, 1, dtype=torch.int64)), x.index_select(0, torch.tensor([0])), x.topk(1).values)
print(x.is_contiguous(), x.data_ptr(), x.stride(0) + 1, x.stride(), x.requires_grad_().is_leaf, x.grad_fn, x.mT, x.real)
for row in x:
    print(row.sum().item())
y: Tensor = x if bool(x.any()) else x.clone()
print(f"{float(y.mean()):.2f}", int(y.argmax()), torch.finfo(torch.float32).eps, torch.iinfo(torch.int8).max)
torch.set_printoptions(precision=3)
torch.save({"x": x}, "x.pt")
x.summ()  # error: reportAttributeAccessIssue
x.sum(dimension=0)  # error: reportCallIssue
x + "a"  # error: reportOperatorIssue
x @ 2  # error: reportOperatorIssue
x["a"]  # error: reportArgumentType
x.reshape()[0].fill_("a")  # error: reportArgumentType
x.unsqueeze()  # error: reportCallIssue
torch.zeros(2, 3, dtype="float32")  # error: reportArgumentType
torch.cat(x=[x])  # error: reportCallIssue
x.shape.numel() + x.shape  # error: reportOperatorIssue
name: str = x.dtype  # error: reportAssignmentType
x.add_(x, out=x)  # error: reportCallIssue
