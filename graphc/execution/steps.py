"""The steps of a call that are functions: what its generated code (see `call_code`) has at hand, by name."""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from eager import autograd
from eager.core import tape
from eager.core.grad_mode import set_grad_enabled
from eager.core.placed import Placed
from eager.core.stand_ins import Deferred
from eager.core.state import add_maker, note_write
from eager.core.tensor import Tensor
from eager.engine.crossing import laid_as
from eager.engine.inplace import assign
from eager.engine.language import E
from graphc.capture.program import Program
from graphc.capture.sources import ViewOf
from graphc.capture.storage.inputs import whole_memory
from graphc.capture.storage.sharing import is_whole
from graphc.capture.tree import Kept, Slot, map_leaves
from graphc.capture.user_objects import opener
from graphc.execution.packs import put_back
from graphc.lowering import ELSEWHERE, block


def assembled(program: Program, leaves: list[Any], given: Any) -> Any:
    """The result of a call with `leaves`. Also puts into Python state what the function put there."""

    def leaf(slot: Any, path: str) -> Any:
        return slot.find(given) if type(slot) is Kept else leaves[slot.index]

    containers: dict[int, Any] = {}
    result = map_leaves(program.result.structure, leaf, "", containers, _opened)
    # all values first: one may be what another place has held so far
    for change, value in [(c, map_leaves(s, leaf, "", containers, _opened)) for c, s in program.effects.state]:
        change.carry_out(value, given)
    return result


_opened = opener(lambda leaf: type(leaf) in (Slot, Kept))


def view(tensor: Tensor, returned: ViewOf) -> Tensor:
    """The view of `tensor` that a result is."""
    with set_grad_enabled(returned.recorded):
        for step in returned.steps:
            lens = step.op.lens  # None where a kernel shows what the steps of its definition would copy
            name = step.op.name if lens is None or lens.shown_by is None else lens.shown_by
            tensor = getattr(E, name)(tensor, **step.params)
    return tensor


def overwrite(tensor: Tensor, value: Any) -> None:
    """Give `tensor` the program's value: in its own memory if others can see that, else by taking the new memory."""
    data = tensor._d
    if value.__class__ is Placed and data.__class__ is not Placed:
        value = Deferred(value.array, value.shape, value.numpy_dtype)
    # references to an ndarray that is only this tensor's: its slot, `data`, and the argument of getrefcount
    if data.__class__ is np.ndarray and (getrefcount(data) > 3 or not is_whole(data)) and data.flags.writeable:
        np.copyto(data, np.asarray(value.array if isinstance(value, Deferred) else value))
        note_write(data)
    elif data.__class__ is Placed:
        data.write(value.array)
    else:
        tensor._d = value


def replace(tensor: Tensor, value: np.ndarray, held: int) -> None:
    """`overwrite` with an array that a program has made, while the call holds the tensor's so many times."""
    data = tensor._d
    if data is value:  # done already, before an interrupt
        return
    shared = data.__class__ is np.ndarray and (getrefcount(data) > 3 + held or not is_whole(data))
    if shared and data.flags.writeable:
        np.copyto(data, value)
        note_write(data)
    else:
        tensor._d = value


def write_recorded(tensor: Tensor, value: Tensor) -> None:
    with set_grad_enabled(True):
        assign(tensor, value, "copy")


def mark(generators: Sequence[Any]) -> list[Any]:
    """Where generators of random numbers are."""
    return [generator.mark() for generator in generators]


def rewind(generators: Sequence[Any], marks: Sequence[Any]) -> None:
    """Let the generators continue from there. May be done twice."""
    for generator, at in zip(generators, marks, strict=True):
        generator.rewind(at)


SHARED: dict[str, Any] = {
    "Deferred": Deferred, "Placed": Placed, "Tensor": Tensor, "elsewhere": ELSEWHERE, "asarray": np.asarray,
    "assembled": assembled,
    "backward": autograd.backward, "block": block, "laid_as": laid_as, "make": object.__new__, "mark": mark,
    "ndarray": np.ndarray,
    "new": object.__new__, "new_node": tape.new_node, "overwrite": overwrite, "put_back": put_back,
    "refs": getrefcount, "replace": replace, "rewind": rewind,
    "view": view, "whole_memory": whole_memory, "write_recorded": write_recorded,
}  # fmt: skip
add_maker(lambda new: SHARED.__setitem__("new", new))  # tensors made in inference mode are noted
