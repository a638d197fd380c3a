"""Tensors that go from one device to another, and their gradients, which go back."""

from __future__ import annotations

from typing import Any

from eager.core import tape
from eager.core.devices import CPU, device
from eager.core.interpreter import current_interpreter
from eager.core.meta import NO_DATA, Meta
from eager.core.placed import Placed, is_elsewhere, is_placed, like, put
from eager.core.placed import beside as data_beside
from eager.core.sparse import ON_CPU, is_sparse
from eager.core.state import grad_enabled
from eager.core.tensor import Tensor

crossings: list[bool] = []  # not empty once a tensor with a history has gone from one device to another


def transferred(t: Tensor, where: device) -> Tensor:
    """`t` on the device `where`, a name that `check_device` has returned; itself, if it is there.

    NotImplementedError for a tensor without values that should get some.
    """
    source = t.device
    if where is source:
        return t
    if is_sparse(t):
        raise NotImplementedError(ON_CPU)
    if not current_interpreter().immediate and (moved := current_interpreter().moved(t, where)) is not None:
        return moved
    if source.type == "meta":
        raise NotImplementedError(NO_DATA)
    if where.type == "meta":
        made = Tensor._wrap(Meta(t._d.shape, t._dtype()))
        return made.requires_grad_() if t._n is not None and not grad_enabled() else made
    data: Any = t._d if is_elsewhere(t) else t._array()
    result = Tensor._wrap(data.values if where is CPU else put(data, where))
    if t._n is not None and grad_enabled():
        crossings[:] = [True]
        result._n = tape.new_node(_CROSSING, [source], t._n)
    return result


def beside(made: Tensor, like: Tensor) -> Tensor:
    """`made`, of constants, on the device of the tensor `like` if its values are on one."""
    if not is_placed(like) or is_elsewhere(made):
        return made
    if like.device.mesh is not None and made._n is None:
        return Tensor._wrap(data_beside(made._array(), like._d))
    return transferred(made, like.device)


def laid_as(g: Tensor, leaf: Tensor) -> Tensor:
    """A gradient on devices, in memory of its own. If it or its leaf is on a mesh, it lies as the leaf does."""
    if leaf._d.__class__ is Placed and leaf._d.device.mesh is not None:
        return Tensor._wrap(like(g._d, leaf._d))
    if g._d.device.mesh is not None and not is_elsewhere(leaf):
        return Tensor._wrap(g._d.values)
    return Tensor._wrap(g._d.alone())


def _back(node: tape.Node, g: Tensor) -> list[Tensor]:
    return [transferred(g, node[tape.SAVED][0])]


def _on_arrays(node: tape.Node, g: Any, heap: list[tape.Node]) -> None:
    (moved,) = _back(node, Tensor._wrap(g))
    tape.give(node[tape.PARENTS], moved._array(), heap)


_CROSSING = tape.Backward(_on_arrays, "ToCopyBackward0", on_tensors=_back, crosses=True)
