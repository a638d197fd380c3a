"""What things are called in printed graphs and generated code: functions, types, and the names of nodes."""

from __future__ import annotations

import builtins
import functools
import keyword
import re
import types
from collections.abc import Callable
from typing import Any

from eager.core import homes
from eager.core.missing import recorded
from eager.core.overriding import AskingFunction
from eager.functional.checking import OF_CPP, PYTHON
from eager.functional.parsing import signatures

# where public functions are looked for, and where PyTorch keeps those of C++ that are there
PLACES = {
    ".": "torch", "nn.functional": "torch._C._nn", "linalg": "torch._C._linalg.linalg_",
    "special": "torch._C._special.special_", "fft": "torch._C._fft.fft_",
}  # fmt: skip
CPP_NAMES = {"logsigmoid": "log_sigmoid"}  # what PyTorch's C++ calls otherwise
ILLEGAL = re.compile(r"[^0-9a-zA-Z_]+")
NUMBERED = re.compile(r"(.+)_(\d+)$")
HUMP = re.compile(r"(?<=[a-z])([A-Z])")


def snake_case(text: str) -> str:
    """`batchNorm` as `batch_norm`."""
    return HUMP.sub(r"_\1", text).lower()


def is_magic(name: str) -> bool:
    """Whether it is a name as `__call__`."""
    return name.startswith("__") and name.endswith("__")


def public_of(function: Any) -> tuple[str, str] | None:
    """("nn.functional", "relu"): where the public function is, and its name there. None if it is none of this package.

    Names with the place before them are found as well: `linalg_norm` is the norm of `linalg`.
    """
    name, module = getattr(function, "__name__", ""), getattr(function, "__module__", None)
    if not homes.is_ours(module) and module != homes.THEIRS:
        return None
    for place in PLACES:
        for each in (name, name.removeprefix(f"{place}_")):
            if each and getattr(homes.opened(place), each, None) == function:
                return place, each
    return _under_another_name(function) if isinstance(function, (types.FunctionType, AskingFunction)) else None


@functools.cache
def _under_another_name(function: Any) -> tuple[str, str] | None:
    for place in PLACES:
        module = homes.opened(place)
        for name in dir(module):
            if getattr(module, name, None) == function:
                return place, name
    return None


def is_written_in_python(function: Any) -> bool:
    """Whether PyTorch writes a public function in Python: it then tells `__torch_function__` of every argument."""
    found = public_of(function)
    return found is not None and not _is_of_cpp(*found)


def _is_of_cpp(place: str, name: str) -> bool:
    if place == "nn.functional":
        return name in OF_CPP
    return place != "." or (name not in PYTHON and bool(signatures(name, False)))


def _path_of(place: str, name: str) -> str:
    """PyTorch's path of a public function."""
    if not _is_of_cpp(place, name):
        within = ("torch.functional" if name in PYTHON else "torch") if place == "." else f"torch.{place}"
        return f"{within}.{name}"
    of_top = place == "nn.functional" and name in recorded()["torch"]
    prefix = "torch" if of_top else PLACES[place]
    return f"{prefix}{'' if prefix[-1] == '_' else '.'}{CPP_NAMES.get(name, name)}"


def qualified_name(function: Callable[..., Any]) -> str:
    """PyTorch's name of a function, "torch.nn.functional.relu"; the name alone if Python knows it without a module."""
    name = getattr(function, "__name__", type(function).__name__)
    if getattr(builtins, name, None) is function:
        return name
    module = getattr(function, "__module__", None)
    if homes.is_ours(module) or str(module) == homes.THEIRS:
        if (found := public_of(function)) is not None:
            return _path_of(*found)
        return ".".join(homes.pytorch_name(function))
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return f"{function.__objclass__.__module__}.{function.__objclass__.__name__}.{name}"
    return f"{str(module).replace('_operator', 'operator')}.{name}"


def pretty_target(target: Any) -> str:
    """The target of a call as printed graphs show it."""
    if isinstance(target, str):
        return target
    name = qualified_name(target)
    return f"builtins.{name}" if "." not in name else name


def type_text(kind: Any) -> str:
    """A type as printed graphs and generated code show it."""
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias):
        if kind.__module__ == "builtins":
            return kind.__qualname__
        module, name = (
            homes.pytorch_name(kind) if homes.is_ours(kind.__module__) else (kind.__module__, kind.__qualname__)
        )
        return f"{module}.{name}"
    if kind is ...:
        return "..."
    if isinstance(kind, types.FunctionType):
        return kind.__name__
    text = repr(kind)
    for part in getattr(kind, "__args__", ()):
        if not isinstance(part, str):
            shown = part.__module__ + "." + part.__qualname__ if isinstance(part, type) else repr(part)
            text = text.replace(shown, type_text(part))
    return text


class Namespace:
    """Names that are taken, each by an object or by none."""

    def __init__(self, reserved: Any = ()) -> None:
        self._reserved = frozenset(reserved)
        self._owners: dict[Any, str] = {}
        self._used: set[str] = set()
        self._highest: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A name that is free, as near to `candidate` as may be. Of an object, the name that it has been given."""
        if obj is not None and obj in self._owners:
            return self._owners[obj]
        candidate = ILLEGAL.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        found = NUMBERED.match(candidate)
        base, number = (candidate, None) if found is None else (found[1], int(found[2]))
        if number is None or candidate in self._used:
            number = self._highest.get(base, 0)
            if self._is_illegal(candidate, obj):
                number += 1
                candidate = f"{base}_{number}"
        while candidate in self._used or self._is_illegal(candidate, obj):
            number += 1
            candidate = f"{base}_{number}"
        self._used.add(candidate)
        self._highest[base] = number
        if obj is not None:
            self._owners[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Let `obj` have that name, which has been created."""
        self._owners[obj] = name

    def rename_object(self, obj: Any, name: str) -> None:
        """Let `obj` have another name."""
        self._owners[obj] = name
        self._used.add(name)

    def _is_illegal(self, name: str, obj: Any) -> bool:
        if keyword.iskeyword(name) or name in self._reserved:
            return True
        return name in vars(builtins) and vars(builtins)[name] is not obj
