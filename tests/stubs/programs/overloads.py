"""Results that depend on arguments: overloads, tuples, optional values, dtypes."""

import eager as torch
import eager.nn.functional as F
from eager import Tensor, nn


def pick(x: Tensor, dim: int | None = None) -> Tensor:
    if dim is None:
        return x.max()
    return x.max(dim).values


def split(x: Tensor) -> tuple[Tensor, ...]:
    a, b = x.chunk(2, dim=-1)
    return (a, b, *x.split([1, 3], dim=-1), *torch.unbind(x))


def stats(x: Tensor) -> dict[str, float]:
    var, mean = torch.var_mean(x, dim=0)
    return {"mean": mean.sum().item(), "var": var.sum().item(), "n": x.numel(), "nan": bool(x.isnan().any())}


x = torch.arange(8, dtype=torch.float32).view(2, 4).requires_grad_()
q, r = torch.linalg.qr(x.T)
u, s, vh = torch.linalg.svd(x, full_matrices=False)
sign, logdet = torch.linalg.slogdet(torch.eye(3))
unique, inverse, counts = torch.unique(torch.tensor([1, 2, 2]), return_inverse=True, return_counts=True)
out, (h, c) = nn.LSTM(4, 5, batch_first=True)(x[None])
attended, weights = nn.MultiheadAttention(4, 2)(x, x, x)
pooled, where = F.max_pool1d(x[None], 2, return_indices=True)
grads = torch.autograd.grad(x.sum(), [x])
first: Tensor = grads[0]
mask: Tensor = x > 3
shape: torch.Size = x.shape
size: int = x.size(0) + x.stride(1) + shape[-1] + len(shape)
device: torch.device = x.device
kind: torch.dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
masked = x.masked_fill(~mask, float("-inf")).softmax(-1)
x[mask] = 0.0
y = x[..., None, 1:-1:2] @ torch.ones(1, 1) + 2 ** x.sum() - 1 / (x.sum() + 1) + (3 // torch.tensor(2)) % 2
print(pick(x), split(x), stats(x), q @ r, u * s @ vh, sign * logdet, unique, inverse, counts, out + h + c, attended)
print(weights, pooled, where, first, size, device.type, kind.itemsize, masked, y, x.grad is None or x.grad.norm())
x.max(0).argmax  # error: reportAttributeAccessIssue
torch.zeros(2, dtype="float32")  # error: reportCallIssue, reportArgumentType
F.cross_entropy(x, reduction="mean")  # error: reportCallIssue
name: str = x.size(0)  # error: reportAssignmentType
x.view("a")  # error: reportArgumentType, reportCallIssue
