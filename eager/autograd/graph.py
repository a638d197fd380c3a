"""`autograd.graph`: the recorded graph from the outside: edges, hooks on several tensors, hooks on what nodes save."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, NamedTuple

from eager.core.shown import ShownObject
from eager.core.state import SAVED_HOOKS, Closing, note_write, saved_hooks
from eager.core.tensor import Tensor
from eager.engine import hooks, walks
from eager.engine.grad_fn import Node, edge_of
from graphc import forking
from graphc.scoped import variable

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
    "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip


class GradientEdge(NamedTuple):
    """A place in the graph that `autograd.grad` can differentiate with respect to."""

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge that gradients of `tensor` arrive by. As `torch.autograd.graph.get_gradient_edge`."""
    if tensor._n is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node, number = edge_of(tensor._n)
    assert node is not None
    return GradientEdge(node, number)


def increment_version(tensor: Any) -> None:
    """Tell autograd that `tensor` has been written in place."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        note_write(t._array())


class saved_tensors_hooks(ShownObject):
    """Context: nodes keep `pack_hook(tensor)` of what they save, and use `unpack_hook` of that in backward.

    As `torch.autograd.graph.saved_tensors_hooks`. Meanwhile the plain path runs everything. RuntimeError within
    `disable_saved_tensors_hooks`.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]):
        self._pair = pack_hook, unpack_hook
        self._closing = Closing()

    def __enter__(self) -> Any:
        if (message := _disabled.get()) is not None:
            raise RuntimeError(message)
        self._closing.set(True)
        self._token = SAVED_HOOKS.set((*saved_hooks(), self._pair))

    def __exit__(self, *error: object) -> None:
        SAVED_HOOKS.reset(self._token)
        self._closing.set(False)


class save_on_cpu(saved_tensors_hooks):
    """Context: what nodes save is kept as a copy in main memory. As `torch.autograd.graph.save_on_cpu`."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        super().__init__(lambda t: t.detach().clone(), lambda t: t)


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Context: what nodes save may be written in place afterwards: backward uses it as it was.

    As `torch.autograd.graph.allow_mutation_on_saved_tensors`, but that values are copied when they are saved. The
    context has a method `clear()`, which has nothing to do here.
    """

    def __init__(self) -> None:
        super().__init__(lambda t: t.detach().clone(), lambda t: t)

    def __enter__(self) -> allow_mutation_on_saved_tensors:
        super().__enter__()
        return self

    def clear(self) -> None:
        """Forget the copies that no node needs: done already."""


_disabled: ContextVar[str | None] = ContextVar("saved_hooks_disabled", default=None)


def disable_saved_tensors_hooks(error_message: str) -> AbstractContextManager[None]:
    """Context: putting saved-tensor hooks in force raises RuntimeError(error_message); so does this, if some are."""
    if saved_hooks():
        raise RuntimeError(error_message)
    return variable(_disabled, error_message)


class _Handles:
    """The handles of a hook on several tensors, as one."""

    def __init__(self, handles: tuple[Any, ...]):
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all") -> _Handles:
    """Call `fn` when gradients of `tensors` have been computed: once all have been, with the list of them; or with the
    first, in mode "any". As `torch.autograd.graph.register_multi_grad_hook`.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = forking.renewed(threading.Lock())
    grads: dict[int, Tensor] = {}
    expected: set[int] = set()

    def begin() -> None:
        visited = walks.visited()
        expected.update(k for k, t in enumerate(tensors) if t._n is not None and id(t._n) in visited)

    def arrive(k: int) -> Callable[[Tensor], None]:
        def hook(g: Tensor) -> None:
            with lock:
                if not expected:
                    begin()
                first = not grads
                grads[k] = g
                complete = grads.keys() >= expected
                found = [grads.get(i) for i in range(len(tensors))]
                if complete:
                    grads.clear()
                    expected.clear()
            if mode == "any" and first:
                fn(g)
            elif mode == "all" and complete:
                fn(found)

        return hook

    live = [(k, t) for k, t in enumerate(tensors) if t._n is not None]
    return _Handles(tuple(hooks.RemovableHandle(hooks.hooked(t._n).of_tensor, arrive(k)) for k, t in live))
