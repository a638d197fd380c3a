"""Levels: what belongs to one call of a gradient transform.

All levels share the tape. The inputs of a level become tensors of their own: with a new node on top of their history,
or with a new leaf if they have none. So gradients with respect to an input of one level never mix with those of
another. At the end of the level, results whose history leads to nothing but leaves of levels that have ended lose it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

from eager.core import tape
from eager.core.grad_mode import enable_grad, set_grad_enabled
from eager.core.interpreter import IMMEDIATE, Interpreter, current_interpreter
from eager.core.pytree import tree_map
from eager.core.state import TRANSFORMS, active_transforms, grad_enabled, sequence
from eager.core.tensor import FLOAT_ONLY, Tensor
from eager.engine.inplace import has_history
from eager.engine.language import E
from eager.func.batching import BatchInterpreter
from graphc.ops.dtypes import is_inexact


@final
class Level(tape.Backward):
    """One call of a gradient transform; also what its leaves, which accumulate nothing, have in common."""

    name = tape.LEAF.name
    on_arrays = staticmethod(tape.end)
    differentiates = True

    def __init__(self) -> None:
        self.active = False
        self.recording = grad_enabled()  # whether anything outside wants history
        self.entered: list[tuple[Interpreter, Tensor]] = []

    def enter(self, x: Tensor) -> Tensor:
        """`x` as an input of this level. Raises RuntimeError for an integer tensor."""
        if not is_inexact(x._dtype()):
            raise RuntimeError(FLOAT_ONLY)
        interpreter = current_interpreter()
        if isinstance(interpreter, BatchInterpreter):
            with interpreter.below():  # each slice has a gradient of its own, so it needs an input of its own
                value = self.enter(interpreter.physical(x))
            return interpreter.wrap(value)
        leaf: tape.Node = [next(sequence), None, self.on_arrays, (), self, None]
        t = interpreter.entered(x, leaf)
        if interpreter is not IMMEDIATE:
            self.entered.append((interpreter, t))
        leaf[tape.PARENTS] = weakref.ref(t)
        return t

    def leave(self, t: Any) -> Any:
        """A result of this level, as what is outside sees it."""
        if not isinstance(t, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(t)}")
        interpreter = current_interpreter()
        if isinstance(interpreter, BatchInterpreter):
            value = interpreter.batch_of(t)
            with interpreter.below():
                left = self.leave(t if value is None else value)
            return left if value is None else interpreter.wrap(left)
        if t._n is None or (self.recording and interpreter.has_leaves(t)):
            return t
        return E.stop_gradient(t)

    def is_shared(self, outputs: Sequence[Tensor]) -> bool:
        """Whether who is outside the level may differentiate what is computed from `outputs`."""
        if not self.recording:
            return False
        self.active = False  # so that the level's own leaves do not count
        try:
            return any(map(current_interpreter().has_leaves, outputs))
        finally:
            self.active = True

    def end(self) -> None:
        """No gradients are taken with respect to the inputs from now on, except by who holds them."""
        for interpreter, t in self.entered:
            interpreter.left(t)


@contextmanager
def level() -> Iterator[Level]:
    """A context: a level. Operations are recorded, whatever the mode outside."""
    new = Level()
    token = TRANSFORMS.set((*active_transforms(), new))
    new.active = True
    try:
        with enable_grad():
            yield new
    finally:
        new.active = False
        new.end()
        TRANSFORMS.reset(token)


def pull(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], cotangents: Sequence[Tensor], create_graph: bool
) -> list[Tensor | None]:
    """The gradients of those of `outputs` that have a history, with respect to `inputs`; the graph is kept."""
    pairs = [(t, c) for t, c in zip(outputs, cotangents, strict=True) if has_history(t)]
    if not pairs:
        return [None] * len(inputs)
    with set_grad_enabled(create_graph):
        outs, seeds = [t for t, _ in pairs], [c for _, c in pairs]
        return current_interpreter().gradients(outs, seeds, inputs, create_graph, True)


def zeros_like(t: Tensor) -> Tensor:
    """Zeros in the place of a gradient that there is none of."""
    return E.full(shape=tuple(t._d.shape), value=0, dtype=t._dtype())


def or_zeros(found: Sequence[Tensor | None], like: Sequence[Tensor]) -> list[Tensor]:
    """`found` with zeros in place of None."""
    return [zeros_like(x) if g is None else g for g, x in zip(found, like, strict=True)]


def left(new: Level, tree: Any) -> Any:
    """A nest of results, left. RuntimeError for what is no Tensor."""
    return tree_map(new.leave, tree)
