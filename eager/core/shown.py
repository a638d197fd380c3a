"""Types, and objects, that print as PyTorch's: `<class 'torch.Tensor'>`, `<torch.Generator object at ...>`."""

from __future__ import annotations


class Shown(type):
    """The type of a class whose `repr` has PyTorch's name for it.

    Its `__module__` stays that of its file, by which `pickle` and `inspect` find it.
    """

    def __repr__(cls) -> str:
        from eager.core import homes

        if not homes.is_ours(cls.__module__):
            return type.__repr__(cls)
        return f"<class '{'.'.join(homes.pytorch_name(cls))}'>"


class ShownObject:
    """An object whose `repr` is Python's, with PyTorch's name of its class; a user's class has its own name."""

    __slots__ = ()

    def __repr__(self) -> str:
        from eager.core import homes

        kind = type(self)
        if not homes.is_ours(kind.__module__):
            return object.__repr__(self)
        return f"<{'.'.join(homes.pytorch_name(kind))} object at {id(self):#x}>"
