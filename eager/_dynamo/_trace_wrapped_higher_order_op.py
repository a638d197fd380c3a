"""A mode that libraries enter around `vmap`."""

from __future__ import annotations


class TransformGetItemToIndex:
    """A context that does nothing: here `vmap` takes `x[i]` with a batched `i` without help."""

    def __enter__(self) -> TransformGetItemToIndex:
        return self

    def __exit__(self, *error: object) -> None:
        pass
