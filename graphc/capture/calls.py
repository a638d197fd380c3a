"""What a graph remembers of the call that it was traced for (see graphc.ir.calling)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from eager.core.sparse import is_sparse
from eager.core.tensor import Tensor
from graphc.capture.tree import children, tensors_of
from graphc.ir import Ref
from graphc.ir.calling import Call
from graphc.ir.named import named_tuple

_PARAMETER = inspect.Parameter


class _NotTold(Exception):
    """Tensors are in a container whose parts have no order, or no names."""


def call_of(
    fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], inputs: Iterator[int]
) -> Call | None:
    """The call `fn(*args, **kwargs)`; `inputs` are the ids of the inputs for the tensors, in order.

    None where tensors are in containers that cannot be told by their parts (sets).
    """
    try:
        given = [_template(value, inputs) for value in args]
        named = {key: _template(value, inputs) for key, value in kwargs.items()}
    except _NotTold:
        return None
    try:
        signature = inspect.signature(getattr(fn, "forward", fn))
        bound = signature.bind(*given, **named)
    except (TypeError, ValueError):  # builtins have no signature, or one that is not all of it
        signature = inspect.Signature([_PARAMETER("args", _PARAMETER.VAR_POSITIONAL),
                                       _PARAMETER("kwargs", _PARAMETER.VAR_KEYWORD)])  # fmt: skip
        bound = signature.bind(*given, **named)
    bound.apply_defaults()
    parameters = signature.parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not _PARAMETER.empty}
    return Call(tuple(_written(list(parameters))), defaults, dict(bound.arguments), Ref)


def _template(tree: Any, inputs: Iterator[int]) -> Any:
    """`tree` with Refs in place of tensors; containers become such as a text has."""
    if isinstance(tree, Tensor) and not is_sparse(tree):
        return Ref(next(inputs))
    inside = children(tree)
    if inside is None:
        return tree
    if not isinstance(tree, (dict, list, tuple)) and not hasattr(tree, "__dataclass_fields__"):
        if any(True for _ in tensors_of(tree)):
            raise _NotTold
        return tree
    parts = [_template(value, inputs) for _, value in inside]
    if isinstance(tree, dict):
        return dict(zip(tree, parts, strict=True))
    if isinstance(tree, list):
        return parts
    if isinstance(tree, tuple) and not hasattr(tree, "_fields"):
        return tuple(parts)
    return named_tuple(type(tree).__name__, tuple(name for name, _ in inside))(*parts)


def _written(parameters: Sequence[inspect.Parameter]) -> Iterator[str]:
    """The parameters as a `def` has them."""
    starred = False
    for k, p in enumerate(parameters):
        if p.kind is _PARAMETER.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred = starred or p.kind is _PARAMETER.VAR_POSITIONAL
        yield {_PARAMETER.VAR_POSITIONAL: "*", _PARAMETER.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
        last = k + 1 == len(parameters) or parameters[k + 1].kind is not _PARAMETER.POSITIONAL_ONLY
        if p.kind is _PARAMETER.POSITIONAL_ONLY and last:
            yield "/"
