"""Types that print as PyTorch's: `<class 'torch.Tensor'>`."""

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
