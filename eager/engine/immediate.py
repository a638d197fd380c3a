"""The immediate interpreter: operations run at once, on NumPy, and are recorded on the tape."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from eager.core import state, tape
from eager.core.interpreter import IMMEDIATE, Interpreter
from eager.core.meta import Meta, is_meta
from eager.core.placed import Placed, is_elsewhere, is_placed
from eager.core.placed import beside as data_beside
from eager.core.state import grad_enabled
from eager.core.tensor import Tensor
from eager.core.views import check_plain_write, check_recorded_write
from eager.engine import dispatch, inplace, walks
from eager.engine.backward import accumulate, node_of
from eager.engine.crossing import beside, crossings, transferred
from eager.engine.hooks import RemovableHandle, hooked
from eager.engine.language import E
from eager.engine.overlap import Extent, extents_of
from graphc.ops.dtypes import FLOAT64
from graphc.ops.spec import Op

CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
    "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
    "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break the "
    "cycle and avoid the leak."
)


def _generated(op: Op, dtype: Any) -> Any:
    """The generated functions for tensors of `dtype`, another one than float32; None if there are none of `op`."""
    return dispatch.double_ops if dtype is FLOAT64 else dispatch.whole_ops(op, dtype)


class Immediate(Interpreter):
    """See `eager.core.interpreter.Interpreter`."""

    def apply(self, op: Op, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        if op.args and not op.variadic and not op.several:
            first, last = operands[op.rule.first], operands[-1]
            if isinstance(first, Tensor):
                if (module := _generated(op, first._d.dtype)) is not None:
                    return module.get(op)(*operands, **params)
            elif (
                len(operands) == 2
                and isinstance(last, Tensor)
                and op.pointwise
                and op.rule.scalars in ("any", "one")
                and (module := _generated(op, last._d.dtype)) is not None
            ):
                return module.reflected(op)(last, first)
        return dispatch.plain(op, operands, params)

    def assign(self, target: Tensor, value: Tensor, name: str, where: Tensor | None = None) -> Tensor:
        kind = target._d.__class__  # asked in place: a call takes longer
        if kind is Meta:
            if grad_enabled() and value._n is not None:
                target._n = value._n
            return target
        recorded = grad_enabled() and (value._n is not None or target._n is not None)
        if kind is Placed or value._d.__class__ is Placed or value._d.__class__ is Meta:
            value = transferred(value, target.device)
        if recorded:
            check_recorded_write(target)
        if recorded and value._dtype() != target._dtype():
            value = E.cast(value, dtype=target._dtype())
        array: Any = target._d
        if kind is Placed:
            written = value if value._dtype() == target._dtype() else E.cast(value.detach(), dtype=target._dtype())
            check_plain_write(target)
            array.write(written._d.array, repeated=name in inplace.FILLS)
        else:
            array = target._writable(repeated=name in inplace.FILLS)
            np.copyto(array, value._array(), casting="unsafe")
            state.note_write(array)
        if recorded:
            inplace.take_over(target, value, array, name)
        return target

    def extents(self, a: Tensor, b: Tensor) -> tuple[Extent, Extent] | None:
        return extents_of(a, b)

    def copied(self, tensor: Tensor) -> Tensor:
        found: Any = tensor._d
        copy = found.alone() if is_placed(tensor) else found if is_meta(tensor) else tensor._array().copy()
        result = Tensor._wrap(copy)
        result._n = tensor._n
        return result

    def backward(self, outputs: Any, cotangents: Any, inputs: Any, create_graph: bool, keep: bool) -> None:
        if create_graph:
            warnings.warn(CYCLE, UserWarning, stacklevel=3)
        # and within another walk, which may have given gradients to nodes that this one visits
        if (
            create_graph
            or inputs is not None
            or state.anomaly.enabled
            or tape.walks
            or self.watching
            or any(map(is_elsewhere, outputs))
            or (crossings and walks.crosses(outputs))
        ):
            targets = walks.leaf_nodes(outputs) if inputs is None else [node_of(t) for t in inputs]
            for node, g in zip(targets, walks.gradients(outputs, cotangents, targets, keep, create_graph), strict=True):
                if g is not None:
                    accumulate(node, g, create_graph, inputs)
            return
        heap: list[tape.Node] = []
        while cotangents:  # taken out one by one: a leaf may take over a gradient that nobody else holds
            tape.give(outputs[len(cotangents) - 1]._n, cotangents.pop()._array(), heap)
        tape.run(heap, keep)

    def gradients(self, outputs: Any, cotangents: Any, inputs: Any, create_graph: bool, keep: bool) -> list[Any]:
        nodes = [t._n if isinstance(t, Tensor) else node_of(t) for t in inputs]
        return walks.gradients(outputs, cotangents, nodes, keep, create_graph)

    def hook(self, tensor: Tensor, hook: Callable[[Any], Any]) -> RemovableHandle:
        return RemovableHandle(hooked(tensor._n).of_tensor, hook)

    def hook_after(self, tensor: Tensor, hook: Callable[[Any], Any]) -> RemovableHandle:
        return RemovableHandle(hooked(tensor._n).accumulated, hook)

    def retain(self, tensor: Tensor) -> None:
        hooked(tensor._n).retained = weakref.ref(tensor)
        if not hasattr(tensor, "_g"):
            tensor._g = None

    def custom(self, rule: Any, inputs: Sequence[Any], outputs: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
        return rule.record(inputs, outputs, wanted)

    def entered(self, tensor: Tensor, leaf: Any) -> Tensor:
        if tensor._n is not None:
            return E.reshape(tensor, shape=tuple(tensor._d.shape))
        stand_in = E.stop_gradient(tensor)
        stand_in._n = leaf
        return stand_in

    def has_leaves(self, tensor: Tensor) -> bool:
        leaves = filter(tape.is_leaf, walks.reachable([tensor._n]))
        return any(getattr(leaf[tape.ABOUT], "active", True) for leaf in leaves)  # those of ended transforms are not

    def random(
        self, draw: Callable[[tuple[int, ...]], np.ndarray], shape: tuple[int, ...], dtype: np.dtype, generator: Any,
        like: Any = None,
    ) -> Tensor:  # fmt: skip
        if like is not None and is_meta(like):
            return Tensor._wrap(Meta(shape, dtype))
        drawn = np.asarray(draw(shape))
        return Tensor._wrap(drawn if like is None or not is_placed(like) else data_beside(drawn, like._d))

    def drawn(self, sampler: Any, inputs: Sequence[Tensor], generator: Any) -> Tensor:
        values = sampler.draw(generator, *[x._read() for x in inputs])
        return beside(Tensor._wrap(np.asarray(values, inputs[0]._dtype())), inputs[0])


IMMEDIATE.__class__ = Immediate  # the instance is of core, which cannot do all this
