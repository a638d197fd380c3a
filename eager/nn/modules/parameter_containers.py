"""Lists and dicts of parameters that are found: ParameterList, ParameterDict."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from eager.core.parameter import Parameter
from eager.core.tensor import Tensor
from eager.nn.module import Module

__all__ = ["ParameterDict", "ParameterList"]


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _described(value: Any, size: str) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    shape = "x".join(map(str, value._d.shape))
    return f"{kind} containing: [{size.format(value)} of size {shape}]"


class ParameterList(Module):
    """A list whose tensors are parameters; anything else may be in it too."""

    def __init__(self, values: Iterable[Any] | None = None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _name_at(self, index: Any) -> str:
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return str(index % len(self))

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(getattr(self, str(i)) for i in range(*index.indices(len(self))))
        return getattr(self, self._name_at(index))

    def __setitem__(self, index: int, param: Any) -> None:
        setattr(self, self._name_at(index), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, parameters: Iterable[Any]) -> ParameterList:
        return self.extend(parameters)

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end. Returns the list."""
        name, self._size = str(self._size), self._size + 1
        setattr(self, name, _as_parameter(value))
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end. Returns the list."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def pop(self, index: int = -1) -> Any:
        """Remove and return the value at `index`."""
        values = list(self)
        found = values.pop(int(self._name_at(index)))
        for i in range(self._size):
            delattr(self, str(i))
        self._size = 0
        self.extend(values)
        return found

    def extra_repr(self) -> str:
        return "\n".join(
            f"  ({i}): {_described(value, 'torch.float32' if not isinstance(value, Tensor) else str(value.dtype))}"
            for i, value in enumerate(self)
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict whose tensors are parameters; anything else may be in it too."""

    def __init__(self, parameters: Any = None):
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _text(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._text(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[self._text(key)] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[self._text(key)]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """A dict with the same values."""
        return ParameterDict(self.items())

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value at `key`, which is set to `default` if there is none."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all values."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove and return the value at `key`."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the last pair."""
        key = list(self._keys)[-1]
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value at `key`, or `default`."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dict of `keys` that all have the value `default`."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names with their values."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add or replace the values of a mapping, or of pairs."""
        if not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(parameters).__name__}"
            )
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            pairs: Iterable[Any] = parameters.items()
        elif isinstance(parameters, Mapping):
            pairs = sorted(parameters.items())
        else:
            pairs = list(parameters)
        for key, value in pairs:
            self[key] = value

    def __or__(self, other: ParameterDict) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        merged = other.copy()
        merged.update(self)
        return merged

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        from eager.nn.module import typename

        return "\n".join(
            f"  ({key}): {_described(value, typename(Tensor._wrap(value._d)) if isinstance(value, Tensor) else '')}"
            for key, value in self.items()
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")
