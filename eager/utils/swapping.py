"""Two tensors change places: everybody who has the one has the other. As `torch.utils.swap_tensors`."""

from __future__ import annotations

import weakref

from eager.core import tape
from eager.core.tensor import Tensor

WATCHED = "Cannot swap {} because it has weakref associated with it"
OTHER_SLOTS = "Cannot swap t1 and t2 if they have different slots"
FIELDS = ("__dict__", "_d", "_g", "_n", "_v")
OWNER = tape.PARENTS  # in the node of a leaf, which has no parents: the weak reference to its tensor


def _is_leaf(t: Tensor) -> bool:
    return t._n is not None and tape.is_leaf(t._n)


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Let `t1` be what `t2` is (values, class, attributes, gradient), and the other way about.

    RuntimeError if one has weak references, which would mean the other one afterwards, or their classes have other
    slots.
    """
    for name, t in (("t1", t1), ("t2", t2)):
        own = t._n[OWNER] if _is_leaf(t) else None
        if any(each is not own for each in weakref.getweakrefs(t)):
            raise RuntimeError(WATCHED.format(name))
    slots = [{slot for base in type(t).__mro__ for slot in vars(base).get("__slots__", ())} for t in (t1, t2)]
    if slots[0] != slots[1]:
        raise RuntimeError(OTHER_SLOTS)
    before = [{field: getattr(t, field) for field in FIELDS if hasattr(t, field)} for t in (t1, t2)]
    t1.__class__, t2.__class__ = type(t2), type(t1)
    for t, fields in ((t1, before[1]), (t2, before[0])):
        for field in FIELDS:
            if field in fields:
                setattr(t, field, fields[field])
            elif hasattr(t, field):
                delattr(t, field)
        if _is_leaf(t):
            t._n[OWNER] = weakref.ref(t)
