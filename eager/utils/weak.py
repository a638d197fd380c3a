"""Dicts whose keys are tensors, by identity, and which keep none of them alive. As `torch.utils.weak`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, TypeVar

from eager.core.tensor import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]

V = TypeVar("V")


class WeakIdRef(weakref.ref[Any]):
    """A weak reference that equals another of the same object, whatever the object equals."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Callable[[Any], Any] | None = None):
        self._id = id(key)

    def __call__(self) -> Any:
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        a, b = self(), other() if isinstance(other, WeakIdRef) else None
        return self is other if a is None or b is None else a is b


class WeakIdKeyDictionary(MutableMapping[Any, V]):
    """A dict with keys by identity, which are gone once nobody else has them."""

    def __init__(self, dict: Mapping[Any, V] | None = None, ref_type: type[Any] = WeakIdRef):
        self.data: Any = {}
        self.ref_type = ref_type
        self._remove = _remover(weakref.ref(self))
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> V:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: V) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        return self.ref_type(key) in self.data

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            if (key := reference()) is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def copy(self) -> WeakIdKeyDictionary[V]:
        """A dict of its own with the same keys and values."""
        return type(self)(self, self.ref_type)

    def keyrefs(self) -> list[Any]:
        """The references to the keys, of which some may be gone."""
        return list(self.data)


def _remover(owner: Callable[[], WeakIdKeyDictionary[Any] | None]) -> Callable[[Any], None]:
    """What is called with the reference to a key that is gone; it does not keep its dict alive."""

    def remove(reference: Any) -> None:
        if (found := owner()) is not None:
            found.data.pop(reference, None)

    return remove


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: Tensor):
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()
