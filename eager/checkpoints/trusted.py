"""Pickles of any object, read by `pickle`: what `torch.load(..., weights_only=False)` asks for. They may run any code.

Names of PyTorch mean what is here under the same name; storages are persistent ids, as in every `.pt` file.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, NamedTuple, final

from eager.checkpoints.pickle_globals import ALLOWED
from eager.core import homes
from eager.core.tensor import Tensor
from graphc.files.pickled import Function


class Trust(NamedTuple):
    """What `load` is given for the pickles that it trusts: a module like `pickle`, and keywords of its Unpickler."""

    pickle: Any
    keywords: dict[str, Any]


def _of_type(function: Callable[..., Any], kind: type, arguments: tuple[Any, ...], state: Any) -> Any:
    """As `torch._tensor._rebuild_from_type_v2`: a tensor of a subclass, with its attributes."""
    made = function(*arguments)
    if type(made) is not kind:
        plain, made = made, object.__new__(kind)
        made._d, made._n = plain._d, None
        made.requires_grad_(plain.requires_grad)
    if getattr(kind, "__setstate__", None) is not getattr(Tensor, "__setstate__", None):
        made.__setstate__(state)
        return made
    fields, slots = state if isinstance(state, tuple) else (state, None)
    for name, value in {**(fields or {}), **(slots or {})}.items():
        setattr(made, name, value)
    return made


# functions that make values: the classes, which files of values only name, are real here
_MADE = {
    **{name: value.make if isinstance(value, Function) else value for name, value in ALLOWED.items()
       if name.startswith("torch.") and name not in ("torch.Tensor", "torch.nn.parameter.Parameter")},
    "torch._tensor._rebuild_from_type_v2": _of_type,
    "torch.tensor._rebuild_from_type_v2": _of_type,
}  # fmt: skip


@final
class TrustedReader:
    """Reads pickles that follow each other in `data`. `at` is where the next one starts.

    stored  what a persistent id stands for
    """

    def __init__(self, data: bytes, stored: Callable[[Any], Any], trust: Trust):
        self.at = 0
        self._file = io.BytesIO(data)
        self._trust = trust

        class Unpickler(trust.pickle.Unpickler):
            def find_class(self, module: str, name: str) -> Any:
                if module.partition(".")[0] != homes.THEIRS:
                    return super().find_class(module, name)
                made = _MADE.get(f"{module}.{name}")
                return homes.found(module, name) if made is None else made

            def persistent_load(self, pid: Any) -> Any:
                return stored(pid)

        self._unpickler = Unpickler

    def load(self) -> Any:
        """The object of the next pickle. Raises what `pickle` raises."""
        self._file.seek(self.at)
        value = self._unpickler(self._file, **self._trust.keywords).load()
        self.at = self._file.tell()
        return value
