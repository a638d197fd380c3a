"""What a program computes, as arrays by name: what it gives to `record`, and its globals at the end."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from types import ModuleType
from typing import Any

import numpy as np

MOST = 10_000  # values of one name


class Recording:
    """What has been recorded so far: `arrays` by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._times: Counter[str] = Counter()

    def add(self, name: str, value: Any) -> None:
        """Take in a value. Those of one name get numbers."""
        self.arrays.update(leaves(f"{name} #{self._times[name]}", value))
        self._times[name] += 1


_recording: Recording | None = None


def record(name: str, value: Any) -> None:
    """Give a value to `graphc run --compare-with-torch`, which compares it; without it, this does nothing.

    value  a tensor, array, number or text, a module, optimizer or anything else with a `state_dict()`, or a nest of
           these in dicts, lists and tuples

    Values given under one name are told apart by their order. What the program has among its globals at the end is
    compared without being recorded.
    """
    if _recording is not None:
        _recording.add(name, value)


def start() -> Recording:
    """From here on `record` fills what this returns."""
    global _recording
    _recording = Recording()
    return _recording


def of_globals(names: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The values of the globals of a program that have any."""
    return {
        key: array for name, value in names.items() if not name.startswith("_") for key, array in leaves(name, value)
    }


def leaves(name: str, value: Any) -> list[tuple[str, np.ndarray]]:
    """The arrays in a value, by name: "model.0.weight", "losses[3].mean". None of them for other objects; of more than
    `MOST` the first ones, and one whose name says so."""
    found = [*islice(_leaves(name, value, ()), MOST + 1)]
    return (
        [*found[:MOST], (f"{name}: only its first {MOST:,} values are compared", np.array(0))]
        if found[MOST:]
        else found
    )


def _leaves(name: str, value: Any, around: tuple[int, ...]) -> Iterator[tuple[str, np.ndarray]]:
    if id(value) in around:  # it contains itself
        return
    around = (*around, id(value))
    array = None if isinstance(value, (type, ModuleType)) else _array(value)
    if array is not None:
        yield name, array
    elif isinstance(value, (type, ModuleType)):
        return
    elif callable(getattr(value, "state_dict", None)) and not hasattr(value, "dataset"):
        # loaders of data have a state here, and none in PyTorch
        yield from _leaves(name, value.state_dict(), around)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(f"{name}.{key}", item, around)
    elif isinstance(value, (list, tuple)):
        for k, item in enumerate(value):
            yield from _leaves(f"{name}[{k}]", item, around)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _leaves(f"{name}.{field.name}", getattr(value, field.name, None), around)


def _array(value: Any) -> np.ndarray | None:
    """A tensor of whichever library, an array, a number, numbers in a list, or text as an array; None for others."""
    if isinstance(value, (list, tuple)) and value and all(type(x) in (bool, int, float, complex) for x in value):
        array = np.array(value)
    elif isinstance(value, (bool, int, float, complex, str, np.generic, np.ndarray)):
        array = np.asarray(value)
    elif callable(getattr(value, "detach", None)) and hasattr(value, "dtype"):
        tensor: Any = value
        if str(tensor.device) == "meta":
            return None  # it has no values
        tensor = tensor.detach()
        if "strided" not in str(tensor.layout):
            tensor = tensor.to_dense()
        # NumPy has no brain floats; float32 has all their values
        array = np.asarray(tensor.float() if "bfloat16" in str(tensor.dtype) else tensor)
    else:
        return None
    return array if array.dtype.kind in "biufcU" else None
