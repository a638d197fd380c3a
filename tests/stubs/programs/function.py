"""Operations of one's own, with their gradients."""

from typing import Any

import eager as torch
from eager import Tensor
from eager.autograd import Function, gradcheck


class Exp(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (result,) = ctx.saved_tensors
        return grad * result


class Scale(Function):
    @staticmethod
    def forward(x: Tensor, by: float) -> Tensor:
        return x * by

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.by = inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad * ctx.by, None


x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
y = Scale.apply(Exp.apply(x), 2.0).sum()
y.backward()
print(gradcheck(Exp.apply, (x,), eps=1e-6))
(g,) = torch.autograd.grad((x * x).sum(), x, create_graph=True)
(h,) = torch.autograd.grad(g.sum(), [x])
print(torch.autograd.functional.jacobian(torch.exp, x), h.tolist())
handle = x.register_hook(lambda grad: grad * 2)
handle.remove()
with torch.enable_grad(), torch.autograd.detect_anomaly():
    (x * 2).sum().backward(retain_graph=True)
torch.autograd.grad(x.sum())  # error: reportCallIssue
torch.autograd.grad(x.sum(), x, retain=True)  # error: reportCallIssue
torch.autograd.gradd(x.sum(), x)  # error: reportAttributeAccessIssue
x.backward(retain=True)  # error: reportCallIssue
g.grad_fn.nosuch = 1
h.detach().numpyy()  # error: reportAttributeAccessIssue
