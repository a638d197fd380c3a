"""`load_state_dict`: compare what is given with what the module has, report all differences at once, then copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from eager.grad_mode import no_grad
from eager.inplace import assign as write
from eager.language import E
from eager.tensor import Parameter, Tensor


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict` could not match."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    __str__ = __repr__


class Slot(NamedTuple):
    """A place for a tensor: `table[name]` of some module."""

    table: dict[str, Any]
    name: str


def slots(module: Any, prefix: str = "") -> dict[str, Slot]:
    """Every parameter and persistent buffer below `module`, by dotted name."""
    found = {}
    for table in (module._parameters, module._buffers):
        for name, value in table.items():
            if value is not None and name not in module._non_persistent:
                found[prefix + name] = Slot(table, name)
    for name, child in module._modules.items():
        if child is not None:
            found |= slots(child, f"{prefix}{name}.")
    return found


def load(module: Any, state_dict: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """See `Module.load_state_dict`."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    places = slots(module)
    missing = [key for key in places if key not in state_dict]
    unexpected = [key for key in state_dict if key not in places]
    problems = []
    if strict and missing:
        problems.append(f"Missing key(s) in state_dict: {_quoted(missing)}. ")
    if strict and unexpected:
        problems.append(f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
    for key, slot in places.items():
        if key in state_dict:
            problems.extend(_mismatch(key, slot.table[slot.name], state_dict[key]))
    if problems:
        lines = "\n\t".join(problems)
        raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{lines}")
    with no_grad():
        for key, slot in places.items():
            if key in state_dict:
                _place(slot, state_dict[key], assign)
    return IncompatibleKeys(missing, unexpected)


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)


def _mismatch(key: str, current: Tensor, given: Any) -> list[str]:
    if not isinstance(given, Tensor):
        return [
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
            f"but received {type(given)}"
        ]
    if given._d.shape != current._d.shape:
        return [
            f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in current "
            f"model is {current.shape}."
        ]
    return []


def _place(slot: Slot, given: Tensor, assign: bool) -> None:
    current = slot.table[slot.name]
    if not assign:
        same = given._dtype() == current._dtype()
        write(current, given if same else E.cast(given, dtype=current._dtype()), "copy")
    elif isinstance(current, Parameter) and not isinstance(given, Parameter):
        slot.table[slot.name] = Parameter(given, current.requires_grad)
    else:
        slot.table[slot.name] = given
