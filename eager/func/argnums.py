"""Checks that the gradient transforms share, and the choice of arguments by number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eager.core.pytree import flatten, tree_map
from eager.core.tensor import Tensor


def numbers_of(argnums: Any, count: int) -> tuple[int, ...]:
    """`argnums`, an int or a tuple, as numbers of positional arguments. Raises RuntimeError for what is none."""
    if isinstance(argnums, bool) or not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    given = argnums if isinstance(argnums, tuple) else (argnums,)
    if not given:
        raise RuntimeError("argnums must be non-empty")
    if len(set(given)) != len(given):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    for number in given:
        if not isinstance(number, int):
            raise RuntimeError(f"argnum must be int, got: {type(number)}")
        if not -count <= number < count:
            raise RuntimeError(f"Got argnum={number}, but only {count} positional inputs")
    return tuple(number % count for number in given)


def entered(new: Any, args: tuple[Any, ...], argnums: Any) -> tuple[tuple[Any, ...], Any]:
    """`args` with those that `argnums` names (all if None) entered in the level `new`; and these."""
    numbers = range(len(args)) if argnums is None else numbers_of(argnums, len(args))
    inside = list(args)
    for k in numbers:
        inside[k] = tree_map(lambda x: new.enter(_checked(x)), args[k])
    chosen = inside[next(iter(numbers))] if isinstance(argnums, int) else tuple(inside[k] for k in numbers)
    return tuple(inside), chosen


def _checked(x: Any) -> Tensor:
    if not isinstance(x, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
    return x


def result_and_aux(result: Any, has_aux: bool, api: str, what: str = "output") -> tuple[Any, Any]:
    """The output of a function, and what it returns beside it. RuntimeError if `has_aux` and it is no pair."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{api}: {what} of function f should be a tuple: (output, aux) if has_aux is True")
    return result


def check_outputs(output: Sequence[Any], api: str) -> None:
    """Raise RuntimeError unless `output`, flat, is Tensors, and some."""
    if not output or (len(output) == 1 and output[0] is None):
        raise RuntimeError(
            f"{api}: Expected f to be a function that has non-empty output (got output = {list(output)})"
        )
    for x in output:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"{api}: expected f(*primals) to return only tensors, got unsupported type {type(x)}")


def refuse_complex(api: str, tree: Any, what: str) -> None:
    """Raise RuntimeError for a complex tensor among the inputs or outputs of a Jacobian."""
    for number, x in enumerate(flatten(tree)[0]):
        if isinstance(x, Tensor) and x._dtype().kind == "c":
            raise RuntimeError(
                f"{api}: Expected all {what} to be real but received complex tensor at flattened input idx: {number}"
            )


Function = Callable[..., Any]
