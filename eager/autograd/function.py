"""`autograd.Function`, and what it is written with. As `torch.autograd.function`."""

from eager.engine.function import Function, FunctionCtx, once_differentiable

__all__ = ["Function", "FunctionCtx", "once_differentiable"]
