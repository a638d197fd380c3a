"""Showing history as PyTorch does where its function is not one op here.

`grad_fn` of a result is the node of the last op. `named` gives that node the name of the function; `whole` also makes
`next_functions` skip the nodes inside.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from eager.core import tape
from eager.core.state import grad_enabled, sequence

Fn = TypeVar("Fn", bound=Callable[..., Any])


class Composite(list[Any]):
    """The last node of a function made of several ops; those with numbers above `since` are inside it."""

    __slots__ = ("since",)


def named(result: Any, name: str) -> Any:
    """`result`, just made by one op, with `name` for its node."""
    node = result._n
    if isinstance(node, list) and not tape.is_dead_end(node):
        tape.rename(node, name)
    return result


def enclosed(result: Any, name: str, since: int) -> Any:
    """`result`, made by ops recorded after number `since`, with one node `name` for them all."""
    return enclosed_each((result,), name, since)[0]


def enclosed_each(results: Sequence[Any], name: str, since: int) -> Sequence[Any]:
    """`enclosed` for the results of one function: those that share a node go on sharing it."""
    made: dict[int, Composite] = {}
    for result in results:
        node = result._n
        if not isinstance(node, list) or -node[0] <= since or tape.is_dead_end(node):
            continue
        light = node[tape.ABOUT].number is not None
        last = node[tape.PARENTS] if light else node
        whole_node = made.get(id(last))
        if whole_node is None:
            whole_node = made[id(last)] = Composite(tape.rename(last, name))
            whole_node.since = since
        if light:
            node[tape.PARENTS] = whole_node
        else:
            result._n = whole_node
    return results


def undifferentiated(result: Any, name: str, *inputs: Any) -> Any:
    """`result`, which counts as made of `inputs` by a function `name`, but passes no gradient on, not even zeros."""
    if grad_enabled() and any(x._n is not None for x in inputs):
        result._n = tape.rename(tape.dead_end(None), name)
    return result


def whole(name: str) -> Callable[[Fn], Fn]:
    """Decorator: what the function records shows as one node called `name`."""

    def decorate(fn: Fn) -> Fn:
        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            since = next(sequence)
            return enclosed(fn(*args, **kwargs), name, since)

        return wrapper  # type: ignore[return-value]

    return decorate


def is_whole(node: tape.Node) -> bool:
    """Whether `node` stands for several ops."""
    return node.__class__ is Composite


def outer_parents(node: tape.Node) -> list[tape.Node | None]:
    """The parents of `node` as it shows itself: of a composite, those from before it."""
    if node.__class__ is not Composite:
        return node[tape.PARENTS :]
    found: list[tape.Node | None] = []
    seen: set[int] = set()
    inside = [iter(node[tape.PARENTS :])]  # the way down; not by recursion: a function may be thousands of ops deep
    while inside:
        parent = next(inside[-1], _END)
        if parent is _END:
            inside.pop()
        elif parent is None:
            found.append(None)
        elif id(parent) not in seen:
            seen.add(id(parent))
            if tape.is_leaf(parent) or -parent[0] < node.since:
                found.append(parent)
            else:
                inside.append(iter(parent[tape.PARENTS :]))
    return sorted(found, key=lambda parent: parent is None)  # constants inside the function are not its operands


_END: Any = object()
