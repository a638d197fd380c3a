"""The interpreter behind `vmap`: each Tensor may stand for a batch of Tensors of its shape.

A batched Tensor has a `Batched` in place of an array, which holds an ordinary Tensor with one dim more, in front. An op
on batched Tensors is one op on those, by the rule for it (`eager.func.batch_rules`), run by the interpreter outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

import numpy as np

from eager.core.interpreter import IMMEDIATE, Interpreter, forwarding, under
from eager.core.state import active_transforms
from eager.core.tensor import Tensor
from eager.engine import inplace
from eager.engine.backward import IN_TRANSFORM
from eager.engine.dispatch import apply
from eager.engine.hooks import register_post_accumulate_grad_hook
from eager.engine.inplace import has_history
from eager.engine.language import E
from eager.func import batch_rules
from eager.func.custom import applied, recorded_below
from eager.functional import strides
from graphc.ops.spec import OPS
from graphc.ops.stand_in import StandIn

CONTROL_FLOW = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that "
    "yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
)
ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, "
    "please try to rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch "
    "internals, please file a bug report."
)
DYNAMIC = (
    "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over {}. Please file "
    "an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
)
REFUSALS = {
    "item": ITEM,
    "mask": "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over "
    "indexing with a boolean mask.",
    "masked_select": "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this "
    "because for each batch this would return a differently shaped Tensor. Please file an issue at "
    "https://github.com/pytorch/pytorch/issues if you need this feature.",
}
NO_STORAGE = "Cannot access data pointer of Tensor that doesn't have storage"
INPLACE = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
    "that has more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped "
    "over in a vmap. Please try to use out-of-place operators instead of inplace arithmetic. If said operator is being "
    "called inside the PyTorch framework, please file a bug report instead."
)
RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)
SAME = (
    "Vmap does not currently support same randomness with a batched tensor input. Please use different randomness or "
    "file an issue with functorch"
)
INPLACE_RANDOM = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. "
    "If this is necessary for your usage, please file an issue with functorch."
)
RANDOM_FILLS = frozenset((
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "normal", "random", "uniform",
))  # fmt: skip


@final
class Batched(StandIn):
    """The data of a Tensor inside vmap: `value` has the batch dim in front."""

    __slots__ = ("interpreter", "shape", "value")
    batched = True

    def __init__(self, interpreter: BatchInterpreter, value: Tensor):
        self.interpreter = interpreter
        self.value = value
        self.shape = tuple(value._d.shape[1:])

    @property
    def numpy_dtype(self) -> np.dtype:
        return self.value._dtype()

    @property
    def has_history(self) -> bool:
        """Whether the tensors that this is a batch of require grad, outside the vmap."""
        return has_history(self.value)

    def force(self, tensor: Tensor) -> np.ndarray:
        raise RuntimeError(NO_STORAGE)

    def truth(self, tensor: Tensor) -> Any:
        raise RuntimeError(CONTROL_FLOW)

    def check_values(self, tensor: Tensor, purpose: str, python: bool) -> None:
        raise RuntimeError(REFUSALS.get(purpose) or DYNAMIC.format(purpose))

    def spread(self, made: Tensor) -> Tensor:
        interpreter = self.interpreter
        with interpreter.below():
            return interpreter.wrap(E.clone(interpreter.expanded(made)))

    def text(self) -> str:
        level = sum(isinstance(t, BatchInterpreter) for t in _chain(self.interpreter))
        inside = "\n".join("    " + line for line in repr(self.value).splitlines())
        return f"BatchedTensor(lvl={level}, bdim=0, value=\n{inside}\n)"


def _chain(interpreter: Interpreter) -> Iterator[Interpreter]:
    yield interpreter
    if isinstance(interpreter, BatchInterpreter):
        yield from _chain(interpreter.outer)


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor behind a batched one, all batch dims in front. As `torch.func.debug_unwrap`."""
    while isinstance(tensor._d, Batched):
        tensor = tensor._d.value
        if not recurse:
            break
    return tensor


@final
@forwarding({
    "outer": "at_each_call capturing created guard inside is_constant lies_plainly number_written on_interrupt "
    "tensor_of values_read values_shown"
})  # fmt: skip
class BatchInterpreter(Interpreter):
    """See `eager.core.interpreter.Interpreter`. `outer` is the interpreter that was in force outside the vmap."""

    immediate = False
    differentiates = False

    def __init__(self, size: int, randomness: str, outer: Interpreter):
        self.size = size
        self.randomness = randomness
        self.outer = outer

    def below(self) -> under:
        """A context: ops run as outside the vmap."""
        return under(self.outer)

    def batch_of(self, x: Any) -> Tensor | None:
        """The Tensor with the batch dim behind `x`, or None if `x` is not batched here."""
        data = x._d if isinstance(x, Tensor) else None
        return data.value if isinstance(data, Batched) and data.interpreter is self else None

    def wrap(self, value: Tensor) -> Tensor:
        """The batched Tensor whose slices are those of `value` along its first dim."""
        t = object.__new__(Tensor)
        t._d = Batched(self, value)
        # history is seen only by the transforms inside this one
        t._n = value._n if self._is_differentiated() else None
        return t

    def _is_differentiated(self) -> bool:
        """Whether a gradient transform inside this vmap is active."""
        active = active_transforms()
        inner = active[active.index(self) + 1 :] if self in active else None
        return inner is None or any(not isinstance(t, BatchInterpreter) for t in inner)

    def expanded(self, x: Tensor) -> Tensor:
        """`x`, which is not batched, with a batch dim. To be run below."""
        shape = tuple(x._d.shape)
        return E.expand(E.reshape(x, shape=(1, *shape)), shape=(self.size, *shape))

    def physical(self, x: Tensor) -> Tensor:
        """`x` with the batch dim in front, batched or not. To be run below."""
        value = self.batch_of(x)
        return self.expanded(x) if value is None else value

    def apply(self, op: Any, operands: Sequence[Any], params: Any) -> Any:
        values = [self.batch_of(x) for x in operands]
        batched = [v is not None for v in values]
        inside = [x if v is None else v for x, v in zip(operands, values, strict=True)]
        if not any(batched):
            with self.below():
                return apply(op, operands, params)
        rule = batch_rules.rule_of(op)
        if rule is None:
            return batch_rules.definition_of(op)(E, *operands, **{**op.params, **params})
        with self.below():
            found = rule(op, self.size, inside, batched, {**op.params, **params})
            return tuple(map(self.wrap, found)) if op.several else self.wrap(found)

    def assign(self, target: Tensor, value: Tensor, name: str, where: Tensor | None = None) -> Tensor:
        place, new = self.batch_of(target), self.batch_of(value)
        if place is None and new is not None:
            if name in RANDOM_FILLS:
                raise RuntimeError(INPLACE_RANDOM)
            if name in OPS and OPS[name].pointwise:
                shapes = list(target._d.shape), [self.size, *value._d.shape]
                raise RuntimeError(f"output with shape {shapes[0]} doesn't match the broadcast shape {shapes[1]}")
            raise RuntimeError(INPLACE)
        with self.below():
            if place is None:
                return inplace.assign(target, value, name)
            inplace.assign(place, self.physical(value), name)
        target._n = place._n if self._is_differentiated() else None
        return target

    def copied(self, tensor: Tensor) -> Tensor:
        value = self.batch_of(tensor)
        with self.below():
            copy = inplace.copied(tensor if value is None else value)
        return copy if value is None else self.wrap(copy)

    def random(
        self, draw: Callable[[tuple[int, ...]], np.ndarray], shape: tuple[int, ...], dtype: np.dtype, generator: Any,
        like: Any = None,
    ) -> Tensor:  # fmt: skip
        if self.randomness == "error":
            raise RuntimeError(RANDOM)
        several = self.randomness == "different"
        wanted = (self.size, *shape) if several else tuple(shape)
        made = self.outer.random(draw, wanted, dtype, generator, like)
        return self.wrap(made) if several else made

    def drawn(self, sampler: Any, inputs: Sequence[Tensor], generator: Any) -> Tensor:
        if self.randomness == "error":
            raise RuntimeError(RANDOM)
        batches = [self.batch_of(x) for x in inputs]
        batched = any(b is not None for b in batches)
        if self.randomness == "same":
            if batched:
                raise RuntimeError(SAME)
            return self.outer.drawn(sampler, inputs, generator)
        with self.below():
            full = [
                E.broadcast_to(x, shape=(self.size, *x._d.shape)) if b is None else b
                for x, b in zip(inputs, batches, strict=True)
            ]
        return self.wrap(self.outer.drawn(sampler, full, generator))

    def retain(self, tensor: Tensor) -> None:
        """Nothing: a batched tensor's `.grad` is what `retain_grad` notes at its node."""

    def set_data(self, tensor: Tensor, value: Tensor) -> None:
        raise RuntimeError("assigning to .data is not supported inside vmap; use an in-place operation")

    def show(self, tensor: Tensor, value: Tensor, name: str) -> None:
        if self.batch_of(tensor) is None and self.batch_of(value) is None:
            with self.below():
                tensor._show(value, name)
        else:
            super().show(tensor, value, name)

    def has_leaves(self, tensor: Tensor) -> bool:
        with self.below():
            return self.outer.has_leaves(self._behind(tensor))

    def window(
        self, tensor: Tensor, size: tuple[int, ...], stride: tuple[int, ...], offset: int | None
    ) -> dict[str, Any]:
        """Each example fills a memory of its own."""
        self.lies_plainly(tensor)
        return strides.plain_window(tensor, size, stride, offset)

    def get_grad(self, tensor: Tensor) -> Tensor | None:
        if self.batch_of(tensor) is not None:
            return getattr(tensor, "_g", None)
        with self.below():
            return self.outer.get_grad(tensor)

    def set_grad(self, tensor: Tensor, value: Tensor | None) -> None:
        if self.batch_of(tensor) is not None:
            tensor._g = value
        else:
            with self.below():
                self.outer.set_grad(tensor, value)

    def backward(self, outputs: Any, cotangents: Any, inputs: Any, create_graph: bool, keep: bool) -> None:
        raise RuntimeError(IN_TRANSFORM)

    def gradients(
        self,
        outputs: Sequence[Tensor],
        cotangents: Sequence[Tensor],
        inputs: Sequence[Tensor],
        create_graph: bool,
        keep: bool,
    ) -> list[Tensor | None]:
        if not any(self.batch_of(t) is not None for t in outputs):
            if any(self.batch_of(t) is not None for t in cotangents):
                return self._gradients_of_batch(outputs, cotangents, inputs, create_graph, keep)
            with self.below():
                return self.outer.gradients(outputs, cotangents, list(map(self._behind, inputs)), create_graph, keep)
        with self.below():
            found = self.outer.gradients(
                [self.physical(t) for t in outputs], [self.physical(t) for t in cotangents],
                [self._behind(t) for t in inputs], create_graph, keep,
            )  # fmt: skip
        return [
            g if g is None or self.batch_of(t) is None else self.wrap(g) for g, t in zip(found, inputs, strict=True)
        ]

    def _behind(self, t: Tensor) -> Tensor:
        value = self.batch_of(t)
        return t if value is None else value

    def _gradients_of_batch(
        self,
        outputs: Sequence[Tensor],
        cotangents: Sequence[Tensor],
        inputs: Sequence[Tensor],
        create: bool,
        keep: bool,
    ) -> list[Tensor | None]:
        """The gradients of one program, for a batch of cotangents."""
        outer = self.outer
        if isinstance(outer, BatchInterpreter) and any(_is_batched_in(t, outer) for t in outputs):
            return self._exchanged(outer, outputs, cotangents, inputs, create, keep)
        if any(i is IMMEDIATE for i in _chain(outer)):
            return IMMEDIATE.gradients(outputs, cotangents, inputs, create, keep)
        with self.below():
            one = [(c, c if (v := self.batch_of(c)) is None else _first(v)) for c in cotangents]
            found = outer.gradients_of_batch(outputs, one, inputs, create, keep, self._applied_inside)
        if found is not None:
            return found
        slices = []
        with self.below():
            for k in range(self.size):
                seeds = [c if (v := self.batch_of(c)) is None else v[k] for c in cotangents]
                slices.append(outer.gradients(outputs, seeds, inputs, create, keep or k < self.size - 1))
            from eager.functional.joining import stack

            columns = list(zip(*slices, strict=True))
            stacked = [None if column[0] is None else stack(column) for column in columns]
        return [None if g is None else self.wrap(g) for g in stacked]

    def _applied_inside(self, op: Any, operands: Sequence[Any], params: Any) -> Any:
        """`apply` from below, for operations that are taken apart into others, too."""
        with under(self):
            return self.apply(op, operands, params)

    def _exchanged(
        self, outer: BatchInterpreter, outputs: Any, cotangents: Any, inputs: Any, create: bool, keep: bool
    ) -> list[Tensor | None]:
        """The gradients of outputs that are batched by `outer`: its batch dim becomes an ordinary one first."""
        inner = BatchInterpreter(self.size, self.randomness, outer.outer)
        seeds = []
        for c in cotangents:
            value = self.batch_of(c)
            with outer.below():
                if value is None:
                    seeds.append(outer.physical(c))
                else:
                    seeds.append(inner.wrap(_swapped(outer.physical(value))))
        with outer.below():
            outs = [outer.physical(t) for t in outputs]
        ins = [outer._behind(t) for t in inputs]
        with under(inner):
            found = inner.gradients(outs, seeds, ins, create, keep)
        result: list[Tensor | None] = []
        for g, t in zip(found, inputs, strict=True):
            value = inner.batch_of(g)
            if value is not None and outer.batch_of(t) is not None:
                with outer.below():
                    g = self.wrap(outer.wrap(_swapped(value)))
            elif value is not None:
                g = self.wrap(value)
            elif g is not None and outer.batch_of(t) is not None:
                g = outer.wrap(g)
            result.append(g)
        return result

    def hook(self, tensor: Tensor, hook: Callable[[Any], Any]) -> Any:
        value = self._behind(tensor)

        def batched_hook(g: Tensor) -> Tensor | None:
            with under(self):
                result = hook(g if value is tensor else self.wrap(g))
            with self.below():
                return None if result is None else result if value is tensor else self.physical(result)

        with self.below():
            return value.register_hook(batched_hook)  # type: ignore[attr-defined]

    def hook_after(self, tensor: Tensor, hook: Callable[[Any], Any]) -> Any:
        value = self._behind(tensor)
        with self.below():
            return register_post_accumulate_grad_hook(value, hook)

    def custom(self, rule: Any, inputs: Sequence[Tensor], outputs: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
        return recorded_below(self, rule, inputs, outputs, wanted)

    def function(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return applied(self, cls, args, kwargs)


def _swapped(x: Tensor) -> Tensor:
    """`x` with its first two dims exchanged."""
    return E.permute(x, dims=(1, 0, *range(2, len(x._d.shape))))


def _first(x: Tensor) -> Tensor:
    """A slice of `x` along its first dim, zeros if there is none."""
    return x[0] if x._d.shape[0] else E.full(shape=tuple(x._d.shape[1:]), value=0, dtype=x._dtype())


def _is_batched_in(t: Tensor, outer: BatchInterpreter) -> bool:
    data = t._d
    return isinstance(data, Batched) and data.interpreter in _chain(outer)
