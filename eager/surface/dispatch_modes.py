"""Modes that see each op: `__torch_dispatch__`. As `torch.utils._python_dispatch`.

They are below autograd, as in PyTorch: a handler runs without recording, and what it returns gets the history that the
op gives. `backward()` runs ops, too, which are told. A function that is several ops here is told as these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from eager.core.grad_mode import no_grad
from eager.core.interpreter import IMMEDIATE, Interpreter, current_interpreter, interpreting, under
from eager.core.state import grad_enabled
from eager.core.tensor import Tensor
from eager.core.views import note_view
from eager.engine import dispatch
from eager.engine.immediate import Immediate
from eager.surface.dispatcher import keywords, told
from graphc.ops.dtypes import is_inexact
from graphc.ops.spec import Op

__all__ = ["TorchDispatchMode"]

CAPTURED = "TorchDispatchMode: {} is being captured, in which an op has no values. Remedy: enter the mode outside of it"
NO_TENSOR = "__torch_dispatch__ of {} returned {} for {}, which gives {} Tensor{}"


class TorchDispatchMode:
    """A block in which each op on tensors goes to `__torch_dispatch__` of the innermost mode.

    A subclass defines `__torch_dispatch__(self, func, types, args=(), kwargs=None)`, which returns what the op gives;
    `func(*args, **kwargs)` does what would have been done without the mode, which is not in force meanwhile. `func` is
    of `torch.ops.aten`: `torch.ops.aten.add.Tensor`. Keywords have the names of docs/ops.md.

    Not seen are functions that make tensors of numbers, such as `ones` and `randn`, and the writes of in-place
    functions, of which the op is. Compiled functions run line by line in the block.

    >>> import eager as torch
    >>> class Named(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = torch.ones(2, requires_grad=True)
    >>> with Named():
    ...     y = (x * 3).sum()
    aten.mul.Tensor
    aten.sum.default
    """

    _entered: list[interpreting]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Self:
        outer = current_interpreter()
        if outer.capturing or not outer.immediate:
            raise NotImplementedError(CAPTURED.format("a program" if outer.capturing else "a function transform"))
        block = interpreting(_Telling(self, outer))
        block.__enter__()
        vars(self).setdefault("_entered", []).append(block)
        return self

    def __exit__(self, *error: object) -> None:
        self._entered.pop().__exit__(*error)


class _Telling(Immediate):
    """Runs ops as its mode says; `outer` runs those that the mode runs."""

    watching = True

    def __init__(self, mode: TorchDispatchMode, outer: Interpreter):
        self.mode, self.outer = mode, outer

    def apply(self, op: Op, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        recorded = bool(op.vjp) and grad_enabled()
        kinds = tuple(dict.fromkeys(type(x) for x in operands if isinstance(x, Tensor) and type(x) is not Tensor))
        with under(self.outer), no_grad():
            made = self.mode.__torch_dispatch__(told(op, operands), kinds, tuple(operands), keywords(params))
        results = self._results(op, operands, made)
        with under(IMMEDIATE):
            tensors = dispatch.promote(op, operands)
            if recorded and op.several:
                dispatch.record_several(op, tensors, params, results)
            elif recorded and is_inexact(results[0]._dtype()):
                dispatch.record(op, tensors, params, results[0])
            if op.view and op.vjp and dispatch.shares_memory(results[0]._d, tensors[0]._d):
                note_view(results[0], tensors[0])
        return results if op.several else results[0]

    def _results(self, op: Op, operands: Sequence[Any], made: Any) -> tuple[Tensor, ...]:
        """What the mode returned, in tensors that have no history yet. TypeError if it is nothing of the kind."""
        several = tuple(made) if op.several and isinstance(made, (tuple, list)) else (made,)
        if not all(isinstance(x, Tensor) for x in several) or (op.several and len(several) == 1):
            wanted = ("several", "s") if op.several else ("a", "")
            name, kind = type(self.mode).__name__, type(made).__name__
            raise TypeError(NO_TENSOR.format(name, kind, told(op, operands), *wanted))
        return tuple(Tensor._wrap(x._d) if x._n is not None or any(x is y for y in operands) else x for x in several)
