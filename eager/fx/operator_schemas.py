"""The arguments of a call as the signature of what is called has them. As `torch.fx.operator_schemas`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from eager.core.overriding import own

__all__ = ["ArgsKwargsPair", "get_signature_for_torch_op", "normalize_function", "normalize_module"]


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """The signatures of a function, in a list; None if it has none that can be read."""
    try:
        return [inspect.signature(own(op))]
    except (ValueError, TypeError):
        return None


def normalize_function(target: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None,
                       arg_types: Any = None, kwarg_types: Any = None, normalize_to_only_use_kwargs: bool = False,
                       ) -> ArgsKwargsPair | None:  # fmt: skip
    """The arguments of a call of a function, each in its place, with defaults. None if they do not fit."""
    found = get_signature_for_torch_op(target)
    return None if found is None else _bound(found[0], args, dict(kwargs or {}), normalize_to_only_use_kwargs)


def normalize_module(root: Any, target: str, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None,
                     normalize_to_only_use_kwargs: bool = False) -> ArgsKwargsPair | None:  # fmt: skip
    """The arguments of a call of the submodule at the dotted path `target`."""
    signature = inspect.signature(root.get_submodule(target).forward)
    return _bound(signature, args, dict(kwargs or {}), normalize_to_only_use_kwargs)


def _bound(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any],
           only_by_name: bool) -> ArgsKwargsPair | None:  # fmt: skip
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    if not only_by_name or inspect.Parameter.VAR_POSITIONAL in kinds:
        return ArgsKwargsPair(bound.args, bound.kwargs)
    return ArgsKwargsPair((), dict(bound.arguments))
