"""Lists and dicts that refuse to be changed: what the arguments of a node hold. As `torch.fx.immutable_collections`."""

from __future__ import annotations

from typing import Any, NoReturn

from eager.core import pytree

__all__ = ["immutable_dict", "immutable_list"]

NO_MUTATION = (
    "'{}' object does not support mutation. If you are attempting to modify the kwargs or args of a torch.fx.Node "
    "object,\ninstead create a new copy of it and assign the copy to the node:\n\n    new_args = ...  # copy and "
    "mutate args\n    node.args = new_args"
)


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(NO_MUTATION.format(type(self).__name__))


class immutable_list(list[Any]):
    """A list whose methods that change it raise TypeError; it can be hashed."""

    __delitem__ = __iadd__ = __imul__ = __setitem__ = append = clear = extend = insert = _refuse  # type: ignore[assignment]
    pop = remove = reverse = sort = _refuse  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(self),)


class immutable_dict(dict[Any, Any]):
    """A dict whose methods that change it raise TypeError; it can be hashed."""

    __delitem__ = __ior__ = __setitem__ = clear = pop = popitem = setdefault = update = _refuse  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (tuple(self.items()),)


pytree.NODES[immutable_list] = pytree.Node(
    lambda t: (list(t), None), lambda children, context: immutable_list(children), pytree.NODES[list].keys
)
pytree.NODES[immutable_dict] = pytree.Node(
    lambda t: (list(t.values()), list(t)),
    lambda children, context: immutable_dict(zip(context, children, strict=True)),
    pytree.NODES[dict].keys,
)
