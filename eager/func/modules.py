"""Modules as functions of their parameters: `functional_call`, `stack_module_state`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from eager.core.tensor import Tensor
from eager.functional.joining import stack

NOT_TO_REMOVE = (
    "functionalize(f, remove='mutations'): received invalid argument for remove={}. Valid options are:\n     "
    "remove='mutations': all inplace and out= operators will be removed from the program, and replaced with their "
    "out-of-place equivalents.\n     remove='mutations_and_views': In addition to the above, all aliasing operators "
    "{{view}} will be replaced with their non-aliasing counterparts, {{view}}_copy.\n"
)


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """`module(*args, **kwargs)` with the parameters and buffers of a dict (or several) in place of its own.

    As `torch.func.functional_call`. `tie_weights`: what the module shares under several names stays shared. `strict`:
    the names must be exactly the module's. ValueError for a name in two of the dicts.
    """
    given = _merged(parameter_and_buffer_dicts)
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    own = dict(module.named_parameters(remove_duplicate=False))
    own |= dict(module.named_buffers(remove_duplicate=False))
    values = _tied(own, given) if tie_weights else given
    if strict:
        _check_names(type(module).__name__, own, values)
    for value in values.values():
        if not isinstance(value, Tensor) and value is not None:
            raise TypeError(f"{value} is not an instance of torch.Tensor")
    places = [(*_place(module, name), value) for name, value in values.items() if name in own]
    before = [_exchange(table, name, value) for table, name, value in places]
    try:
        return module(*args, **(kwargs or {}))
    finally:
        for (table, name, _), value in zip(reversed(places), reversed(before), strict=True):
            table[name] = value


def _merged(dicts: Any) -> dict[str, Tensor]:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    repeated = [key for key, n in Counter(key for d in dicts for key in d).items() if n > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {key: value for d in dicts for key, value in d.items()}


def _check_names(kind: str, own: dict[str, Any], given: dict[str, Any]) -> None:
    missing = [name for name in own if name not in given]
    unexpected = [name for name in given if name not in own]
    texts = [
        f"\n\t{what} key(s): {', '.join(map(repr, names))}."
        for what, names in (("Unexpected", unexpected), ("Missing", missing)) if names
    ]  # fmt: skip
    if texts:
        raise RuntimeError(f"Error(s) in reparametrizing for {kind}:{''.join(texts)}")


def _tied(own: dict[str, Any], given: dict[str, Tensor]) -> dict[str, Tensor]:
    """`given` for every name under which the module has the same tensor. ValueError if two of those have two values."""
    by_tensor: dict[int, list[str]] = {}
    for name, tensor in own.items():
        by_tensor.setdefault(id(tensor), []).append(name)
    result = dict(given)
    for names in by_tensor.values():
        found = {id(given[name]): given[name] for name in names if name in given}
        if len(found) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {[n for n in names if n in given]}, which are tied. "
                "Consider using tie_weights=False"
            )
        for name in names if found else ():
            result[name] = next(iter(found.values()))
    return result


def _place(module: Any, path: str) -> tuple[dict[str, Any], str]:
    """The table of the (sub)module that has `path` among its parameters or buffers, and the name there."""
    *parents, name = path.split(".")
    for parent in parents:
        module = getattr(module, parent)
    for table in (module._parameters, module._buffers):
        if name in table:
            return table, name
    raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")


def _exchange(table: dict[str, Any], name: str, value: Any) -> Any:
    before, table[name] = table[name], value
    return before


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """(parameters, buffers) of models of one class, stacked along a new first dim. As `torch.func.stack_module_state`.

    The parameters are new leaves. RuntimeError for no models, and for models of different classes or modes.
    """
    if not len(models):
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    return tuple({name: _stacked([t[name] for t in tables], name) for name in tables[0]}
                 for tables in (parameters, buffers))  # type: ignore[return-value]  # fmt: skip


def _stacked(tensors: list[Tensor], name: str) -> Tensor:
    wanted = {t.requires_grad for t in tensors}
    if len(wanted) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    return stack(tensors).detach().requires_grad_(wanted.pop())  # type: ignore[attr-defined]


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """`func`, which computes the same: here captured graphs have neither mutations nor views to be removed.

    As `torch.func.functionalize`. RuntimeError for another `remove` than "mutations" and "mutations_and_views".
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(NOT_TO_REMOVE.format(remove))

    @wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapped
