"""Views: which tensors show memory of which.

`_v` of a tensor is unset, or

- for a view: (base, origin), the tensor whose memory it shows and how it came about;
- for a base: a `Views`, weak references to the views of it.

How history follows a write through them is in `eager.engine.inplace`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eager.core import tape
from eager.core.placed import Placed, data_of
from eager.core.state import Recent, grad_enabled, version_of

# other origins: (number of the output, name of the function that made several)
PLAIN, NO_GRAD, OF_LEAF = "", "no_grad", "of a leaf"

LEAF_VIEW = "a view of a leaf Variable that requires grad is being used in an in-place operation."
_IN_NO_GRAD = (
    " was created in no_grad mode and {what} modified inplace with grad mode enabled. Given that this use case "
    "is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace "
    "either both inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if you want "
    "the inplace to be tracked)."
)
MADE_IN_NO_GRAD = "A view" + _IN_NO_GRAD.format(what="is being")
OF_ONE_MADE_IN_NO_GRAD = "Output 0 of {name} is a view of a view which" + _IN_NO_GRAD.format(what="is being")
WRITTEN_SINCE = "A view" + _IN_NO_GRAD.format(what="its base or another view of its base has been")
ONE_OF_SEVERAL = (
    "Output {number} of {name} is a view and is being modified inplace. This view is the output of a function that "
    "returns multiple views. Such functions do not allow the output views to be modified inplace. You should replace "
    "the inplace operation by an out-of-place one."
)


class Views(Recent):
    """The views of a base."""


def note_view(view: Any, source: Any) -> None:
    """Remember that `view`, just made, shows memory of the tensor `source`."""
    try:
        about = source._v
    except AttributeError:
        about = source._v = Views()
    if about.__class__ is Views:
        base, origin = source, PLAIN
        about.add(view)
    else:
        base, origin = about
        base._v.add(view)
        if origin == PLAIN and source._n is not None and view._n is not None and tape.is_leaf(source._n):
            origin = OF_LEAF  # a view that requires_grad_() has made a leaf
    if not grad_enabled():
        origin = origin or NO_GRAD
        if source._n is not None and (view._d.__class__ is np.ndarray or view._d.__class__ is Placed):
            # it requires grad as its base does, but nothing flows through it
            view._n = tape.dead_end(version_of(view._d))
    view._v = (base, origin)


def note_pieces(pieces: Sequence[Any], source: Any, name: str) -> None:
    """Remember that `pieces`, just made, show memory of the tensor `source`, and are the outputs of `name`."""
    known = getattr(source, "_v", None)
    if known is None:
        known = source._v = Views()
    if known.__class__ is Views and grad_enabled():  # the usual case, at half the cost
        for number, piece in enumerate(pieces):
            known.add(piece)
            piece._v = (source, (number, name))
        return
    for number, piece in enumerate(pieces):
        note_view(piece, source)
        base, origin = piece._v
        if origin == PLAIN:
            piece._v = (base, (number, name))


def not_a_view(tensor: Any) -> Any:
    """`tensor`, made as a view of a tensor that nobody else has."""
    if getattr(tensor, "_v", None).__class__ is tuple:
        del tensor._v
    if tape.is_dead_end(tensor._n):
        tensor._n = None
    return tensor


def base_of(tensor: Any) -> Any:
    """The tensor that `tensor` is a view of, or None."""
    about: Any = getattr(tensor, "_v", None)
    return about[0] if about.__class__ is tuple else None


def is_view(tensor: Any) -> bool:
    """Whether `tensor` is a view of another."""
    return base_of(tensor) is not None


def check_recorded_write(target: Any) -> None:
    """Raise PyTorch's RuntimeError unless autograd can record an in-place write to `target`."""
    about: Any = getattr(target, "_v", None)
    if about.__class__ is not tuple:
        return
    base, origin = about
    if origin == NO_GRAD:
        if target._n is None or tape.is_dead_end(target._n):
            raise RuntimeError(MADE_IN_NO_GRAD)
        raise RuntimeError(OF_ONE_MADE_IN_NO_GRAD.format(name=tape.name_of(target._n).partition("Backward")[0]))
    if origin == OF_LEAF:
        raise RuntimeError(LEAF_VIEW)
    if origin:
        raise RuntimeError(ONE_OF_SEVERAL.format(number=origin[0], name=origin[1]))
    if target._n is not None if base._n is None else tape.is_leaf(base._n):  # perhaps it is frozen by now
        raise RuntimeError(LEAF_VIEW)


def check_plain_write(target: Any) -> None:
    """`check_unrecorded_write` for a view that requires no grad; others are checked elsewhere."""
    if target._n is None and getattr(target, "_v", None).__class__ is tuple:
        check_unrecorded_write(target)


def check_unrecorded_write(target: Any) -> None:
    """Raise PyTorch's RuntimeError for a view made without recording if a write to it now would have to be recorded."""
    base, origin = target._v
    if origin == NO_GRAD and base._n is not None and grad_enabled():
        raise RuntimeError(MADE_IN_NO_GRAD)


def check_unwritten(view: Any) -> None:
    """Raise PyTorch's RuntimeError if the memory of `view`, a dead end, has been written since it was made."""
    if version_of(data_of(view)) != view._n[tape.SAVED][0]:
        raise RuntimeError(WRITTEN_SINCE)


def geometry(base: Any, view: Any) -> dict[str, Any]:
    """Where the data `view` lie in the memory of `base`, as parameters of `as_strided`."""
    if view.__class__ is Placed:
        return view.geometry(base)
    item = base.itemsize
    offset = (view.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // item
    layout = None if base.flags.c_contiguous else (tuple(s // item for s in base.strides), 0)
    return {"size": view.shape, "stride": tuple(s // item for s in view.strides), "offset": offset, "layout": layout}
