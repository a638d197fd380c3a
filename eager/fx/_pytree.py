"""What generated code takes nests of arguments apart with. As `torch.fx._pytree`."""

from __future__ import annotations

from typing import Any

from eager.core.pytree import TreeSpec

__all__ = ["tree_flatten_spec"]


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """The leaves of `pytree`, whose containers are those of `spec`; a list stands for the tuple of all arguments."""
    given = tuple(pytree) if spec.type is tuple and isinstance(pytree, list) else pytree
    return spec.flatten_up_to(given)
