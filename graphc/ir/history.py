"""What `grad_fn` shows of a tensor under a trace: that it has a history, and nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from graphc import errors

if TYPE_CHECKING:
    from graphc.ir.builder import Symbol


_SOMEWHERE = {"aval": "a traced tensor", "made": "a line of the compiled function", "used": "there, or after it"}


class _Nameless(type):
    """Makes classes that do not tell the name by which programs know the nodes of a tape."""

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise errors.CaptureError(errors.NO_TAPE_NODE.format(what="the class name", **_SOMEWHERE))

    def __repr__(cls) -> str:
        return "<class of the nodes of traced tensors>"


class TracedNode:
    """The node of a traced tensor. Raises CaptureError for whatever it is asked, but whether it is None."""

    __slots__ = ("_symbol",)

    def __init__(self, symbol: Symbol):
        self._symbol = symbol

    def _refuse(self, what: str) -> NoReturn:
        raise self._symbol.error(errors.NO_TAPE_NODE, what)

    def __getattr__(self, name: str) -> Any:
        self._refuse(name)

    def __repr__(self) -> str:
        self._refuse("its text")

    def __eq__(self, other: object) -> bool:
        return False if other is None else self._refuse("whether it is another")

    def __hash__(self) -> int:
        self._refuse("hash")


# in a tuple: who looks through the module for classes asks each for its name
_KINDS: tuple[type[TracedNode], ...] = (_Nameless("TracedNode", (TracedNode,), {"__slots__": ()}),)


def traced_node(symbol: Symbol) -> TracedNode:
    """What stands for the node of the traced tensor with the value `symbol`."""
    return _KINDS[0](symbol)
