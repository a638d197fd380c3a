"""What a traced function has made, as eager would have it: for a call that ends with an exception."""

from __future__ import annotations

from typing import Any, NoReturn, final

from eager.core import tape
from eager.core.interpreter import IMMEDIATE, interpreting
from eager.core.parameter import Parameter
from eager.core.tensor import Tensor
from graphc import errors
from graphc.capture.sources import Argument, Captured, History, Lifted
from graphc.capture.tracer import Tracer
from graphc.capture.tree import Kept, map_leaves


def _lost(node: tape.Node, g: Any, heap: Any = None) -> NoReturn:
    raise RuntimeError(node[tape.SAVED][0])


_LOST = tape.Backward(_lost, "CompiledBackward", on_tensors=_lost)


@final
class Materializer:
    """The concrete values of traced tensors and numbers, for `map_leaves`; a tensor is one however often it is met.

    given  the arguments of the call
    """

    def __init__(self, tracer: Tracer, given: Any = ((), {})):
        self._tracer = tracer
        self._given = given
        self._known: dict[int, tuple[Any, Any]] = {}  # with the traced tensor, which keeps its id

    def __call__(self, leaf: Any, path: str = "") -> Any:
        if type(leaf) is Kept:
            return leaf.find(self._given)
        if not isinstance(leaf, Tensor):
            return leaf.concrete()
        if id(leaf) not in self._known:
            owner = self._tracer.state.owner_of(leaf)
            if isinstance(owner, (Argument, Captured, Lifted)):
                found = self._tracer.state.given(owner)
            else:
                found = self._made(leaf)
            self._known[id(leaf)] = leaf, found
        return self._known[id(leaf)][1]

    def _made(self, traced: Tensor) -> Tensor:
        """A tensor that the function has made, with a history only to say that it is lost."""
        id_ = self._tracer.read(traced).id
        found = Tensor._wrap(self._tracer.concretization.value_of_node(id_))
        if isinstance(traced, Parameter):
            return Parameter(found, traced.requires_grad)
        history = self._tracer.autograd.history(traced)
        if history is History.LEAF:
            found.requires_grad_()
        elif history is not History.NONE:
            where = self._tracer.builder.nodes[id_].where
            found._n = tape.new_node(_LOST, (errors.HISTORY_LOST.format(made=where),))
        return found

    def reveal(self, error: BaseException | None) -> None:
        """Put concrete values in place of traced ones in an exception of the user's, and in its causes."""
        seen: set[int] = set()
        with interpreting(IMMEDIATE):
            while error is not None and id(error) not in seen:
                seen.add(id(error))
                error.args = tuple(map_leaves(a, self) for a in error.args)
                for name, value in list(vars(error).items()):
                    setattr(error, name, map_leaves(value, self))
                error = error.__cause__ or error.__context__
