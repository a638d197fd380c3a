"""What nodes note of where they come from. As `torch.fx.traceback`, as far as libraries name it."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = [
    "annotate", "format_stack", "get_current_meta", "has_preserved_node_meta", "preserve_node_meta",
    "set_current_meta", "set_stack_trace",
]  # fmt: skip

_current: dict[str, Any] = {}
_preserved: list[bool] = [False]


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """A block in which an Interpreter hands the `meta` of the node that it runs on to those that are made."""
    before, kept = _preserved[0], dict(_current)
    _preserved[0] = enable
    try:
        yield
    finally:
        _preserved[0] = before
        _current.clear()
        _current.update(kept)


@contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """A block in which nodes that are made have the `meta` of `node`, if it is to be preserved."""
    if not (_preserved[0] and node.meta):
        yield
        return
    kept = dict(_current)
    _current.update(node.meta)
    try:
        yield
    finally:
        _current.clear()
        _current.update(kept)


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """A block in which nodes that are made have these entries under "custom" in their `meta`."""
    before = _current.get("custom")
    _current["custom"] = {**(before or {}), **annotation_dict}
    try:
        yield
    finally:
        if before is None:
            del _current["custom"]
        else:
            _current["custom"] = before


def has_preserved_node_meta() -> bool:
    """Whether `preserve_node_meta` is in force."""
    return _preserved[0]


def set_stack_trace(stack: list[str]) -> None:
    """Let nodes that are made have this trace."""
    if _preserved[0] and stack:
        _current["stack_trace"] = "".join(stack)


def get_current_meta() -> dict[str, Any]:
    """The `meta` that nodes are given now."""
    return _current


def format_stack() -> list[str]:
    """The trace that nodes are given now; else the lines of this call's."""
    if _preserved[0]:
        return [_current.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])
