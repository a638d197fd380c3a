"""Hooks on tensors and nodes. A node that has some carries a `Hooked` for its backward function; others pay nothing.

The order is PyTorch's: hooks of the tensor, `retain_grad` (which sees what those made of the gradient), hooks before
the node, the node, hooks after it; for a leaf, the accumulation and then the hooks after that.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from eager.core import tape
from eager.core.interpreter import IMMEDIATE, current_interpreter
from eager.core.placed import data_of
from eager.core.tensor import Tensor
from graphc.ops.rules import torch_name

Hook = Callable[..., Any]
_ids = itertools.count()
first_hooks: dict[str, int] = {"count": 0}  # how often a node has got its first hook

NO_TENSOR = "expected Variable, but hook returned '{}'"
NOT_GRAD = "cannot register a hook on a tensor that doesn't require gradient"


@final
class RemovableHandle:
    """What registering a hook returns; `remove()` takes the hook away again. Works as a context, too."""

    __slots__ = ("_hooks", "id")

    def __init__(self, hooks: dict[int, Hook], hook: Hook):
        self._hooks = hooks
        self.id = next(_ids)
        hooks[self.id] = hook

    def remove(self) -> None:
        """Take the hook away. A second time does nothing."""
        self._hooks.pop(self.id, None)

    def __repr__(self) -> str:
        return f"<torch.utils.hooks.RemovableHandle object at {id(self):#x}>"

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


@final
class Hooked:
    """A node's backward function with what is to run before and after it."""

    __slots__ = ("accumulated", "after", "before", "of_tensor", "retained")

    def __init__(self):
        self.of_tensor: dict[int, Hook] = {}
        self.retained: weakref.ref[Tensor] | None = None
        self.before: dict[int, Hook] = {}
        self.after: dict[int, Hook] = {}
        self.accumulated: dict[int, Hook] = {}

    def __call__(self, node: tape.Node, g: Any, heap: list[tape.Node]) -> None:
        self.outgoing(node, self.incoming_arrays(g), heap)

    def incoming_arrays(self, g: Any) -> Any:
        """`incoming` for arrays."""
        return each(data_of, self.incoming(each(_wrapped, g)))

    def incoming(self, g: Any) -> Any:
        """The gradient that has arrived or the list of those of several outputs, as hooks before the node leave it."""
        for hook in list(self.of_tensor.values()):
            g = _replaced(g, hook(g), hook)
        if self.retained is not None:
            tensor = self.retained()
            if tensor is not None:
                old = getattr(tensor, "_g", None)
                tensor._g = g.clone() if old is None else old + g
        for hook in list(self.before.values()):
            given = tuple(tape.by_output(g))
            result = hook(given)
            if result is not None:
                left = [r if d is None else _replaced(d, r, hook) for d, r in zip(given, result, strict=False)]
                g = left if isinstance(g, list) else left[0]
        return g

    def outgoing(self, node: tape.Node, g: Any, heap: list[tape.Node]) -> None:
        """The node, and the hooks after it, on arrays."""
        if self.after and tape.is_leaf(node):
            node[tape.ABOUT].on_arrays(node, g, heap)
            self.leaving(node, (), _wrapped(g))
        elif self.after:
            shares = self.leaving(node, each(_wrapped, tape.shares(node, g)), each(_wrapped, g))
            for parent, share in zip(node[tape.PARENTS :], shares, strict=True):
                if parent is not None and share is not None:
                    tape.give(parent, data_of(share), heap)
        else:
            node[tape.ABOUT].on_arrays(node, g, heap)
        self.has_accumulated(node)

    def leaving(self, node: tape.Node, shares: Sequence[Tensor | None], g: Any) -> Sequence[Tensor | None]:
        """What the node gives its parents, as the hooks after it leave it."""
        seen = tape.placed(node, shares)
        for hook in list(self.after.values()):
            result = hook(tuple(seen), tuple(tape.by_output(g)))
            if result is not None:
                seen = [result] if isinstance(result, Tensor) else list(result)
        return tape.displaced(node, seen)

    def has_accumulated(self, node: tape.Node) -> None:
        """Run what is to run after a leaf's `.grad` has been written."""
        if not self.accumulated:
            return
        self.call_accumulated(node[tape.PARENTS]())

    def call_accumulated(self, tensor: Any) -> None:
        """Run the hooks of the leaf `tensor`, whose `.grad` has been written."""
        left = tensor
        for hook in list(self.accumulated.values()):
            result = hook(left)
            if result is not None and not isinstance(result, Tensor):
                raise TypeError(NO_TENSOR.format(type(result).__name__))
            left = left if result is None else result
        if left is not tensor:
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def _wrapped(g: Any) -> Tensor:
    """A gradient as a Tensor; of a 0-d array, NumPy's reductions have left a scalar."""
    return Tensor._wrap(np.asarray(g) if isinstance(g, np.generic) else g)


def each(f: Callable[[Any], Any], g: Any) -> Any:
    """f(g), or that of each gradient in a list."""
    return [None if d is None else f(d) for d in g] if isinstance(g, list) else f(g)


def _replaced(g: Tensor, result: Any, hook: Hook) -> Tensor:
    """What a hook returned, checked; `g` if that is None."""
    if result is None:
        return g
    name = getattr(hook, "__name__", type(hook).__name__)
    if not isinstance(result, Tensor):
        raise TypeError(NO_TENSOR.format(type(result).__name__))
    if result._dtype() != g._dtype():
        was, got = torch_name(g._dtype()), torch_name(result._dtype())
        raise RuntimeError(f"hook '{name}' has changed the type of value (was torch.{was}Tensor got torch.{got}Tensor)")
    if result._d.shape != g._d.shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value")
    return result


def hooked(node: tape.Node) -> Hooked:
    """The hooks of `node`, which has some from now on."""
    if node[tape.BACKWARD].__class__ is not Hooked:
        first_hooks["count"] += 1
        node[tape.BACKWARD] = Hooked()
    return node[tape.BACKWARD]


def hooks_of(node: tape.Node) -> Hooked | None:
    """The hooks of `node`, if it has any."""
    return node[tape.BACKWARD] if node[tape.BACKWARD].__class__ is Hooked else None


def register_hook(self: Tensor, hook: Hook) -> Any:
    """Call `hook(grad)` each time a gradient with respect to this tensor has been computed; a Tensor that it returns
    takes the gradient's place. As `torch.Tensor.register_hook`. RuntimeError for a tensor that requires no grad.
    """
    if self._n is None:
        raise RuntimeError(NOT_GRAD)
    return current_interpreter().hook(self, hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Hook) -> RemovableHandle:
    """Call `hook(tensor)` each time `.grad` of this leaf has been written. As in PyTorch."""
    if self._n is None:
        raise RuntimeError(NOT_GRAD)
    if not self.is_leaf:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return current_interpreter().hook_after(self, hook)


def retain_grad(self: Tensor) -> None:
    """Let `.grad` of this non-leaf tensor be filled by backward(). As `torch.Tensor.retain_grad`."""
    if self._n is None:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if not self.is_leaf:
        (IMMEDIATE if isinstance(self._n, list) else current_interpreter()).retain(self)


def retains_grad(self: Tensor) -> bool:
    """Whether this is a non-leaf tensor whose `.grad` backward() fills. As `torch.Tensor.retains_grad`."""
    found = hooks_of(self._n) if isinstance(self._n, list) else None
    return found is not None and found.retained is not None and found.retained() is self


METHODS: dict[str, Callable[..., Any]] = {
    "register_hook": register_hook, "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
    "retain_grad": retain_grad,
}  # fmt: skip
