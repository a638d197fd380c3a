"""Ways to call a function once more that must not bring back what an earlier call has left in a compiled program."""

from __future__ import annotations

import copy
import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple, final

import numpy as np

from compare.cases.call import Wrap
from compare.cases.case import Case
from eager.core.tensor import Tensor
from graphc.capture.state.places import Inside, Place, RequiresGrad
from graphc.capture.tree import map_tensors
from graphc.ops.aval import Aval, aval_of
from graphc.ops.dtypes import is_inexact

MOST = 8  # places of a kind that are tried: each may cost a compilation
CALLS = 3


@final
class Perturbation(NamedTuple):
    """Another call: with these arguments, after `change` has changed what the function reaches; `wrap` as of a Case."""

    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    change: Callable[[], object] = lambda: None
    wrap: Wrap = lambda call: call


def perturbations(case: Case) -> Iterator[Perturbation]:
    """Those that there are for a case, lazily: each is made from the state of that moment."""
    yield Perturbation(f"{CALLS} calls in a row", case.args, case.kwargs, wrap=_in_a_row)
    yield from _other_sizes(case)
    yield from _other_arrangements(case)
    yield from _other_numbers(case)
    yield from _changed_captures(case)


def _in_a_row(call: Callable[..., Any]) -> Callable[..., Any]:
    """The list of the results of calls that each start from the state that the one before has left."""

    @functools.wraps(getattr(call, "forward", call), updated=())
    def calls(*args: Any, **kwargs: Any) -> Any:
        return [call(*args, **kwargs) for _ in range(CALLS)]

    return calls


def _with(case: Case, name: str, new: Mapping[int, Tensor]) -> Perturbation:
    """The call with other tensors, by the ids of those that they replace."""

    def other(tensor: Tensor, path: str) -> Tensor:
        return new.get(id(tensor), tensor)

    args = tuple(map_tensors(a, other) for a in case.args)
    return Perturbation(name, args, {k: map_tensors(a, other) for k, a in case.kwargs.items()})


def _name(case: Case, tensor: Tensor) -> str:
    return next((i.name for i in case.inputs if i.tensor is tensor), "an argument that is not read")


def _like(tensor: Tensor, array: np.ndarray) -> Tensor:
    made = Tensor._wrap(array)
    return made.requires_grad_() if tensor.requires_grad else made


def _arguments(case: Case) -> list[Tensor]:
    return list({id(t): t for t in case.tensors}.values())


def _other_sizes(case: Case) -> Iterator[Perturbation]:
    """Arguments with a leading size in common are given one more row, and then three: the second may be derived."""
    by_size: dict[int, list[Tensor]] = defaultdict(list)
    for tensor in _arguments(case):
        if tensor._d.shape and tensor._d.shape[0]:
            by_size[tensor._d.shape[0]].append(tensor)
    for size, tensors in by_size.items():
        for other in (size + 1, size + 3):
            rows = np.arange(other) % size
            names = ", ".join(_name(case, t) for t in tensors)
            new = {id(t): _like(t, np.take(t._array(), rows, 0)) for t in tensors}
            yield _with(case, f"{names}: leading size {other} in place of {size}", new)


def _other_arrangements(case: Case) -> Iterator[Perturbation]:
    """Tensors of one shape and dtype change places, are one and the same, or share memory."""
    groups: dict[Aval, list[Tensor]] = defaultdict(list)
    for tensor in _arguments(case):
        groups[aval_of(tensor._array())].append(tensor)
    captured = {aval_of(i.tensor._array()): i for i in _captured(case)}
    for aval, (first, *rest) in groups.items():
        one = _name(case, first)
        if aval in captured:
            yield _with(case, f"{one} is {captured[aval].name}", {id(first): captured[aval].tensor})
        if not rest:
            continue
        names = ", ".join(_name(case, t) for t in (first, *rest))
        yield _with(
            case, f"{names}: in another order", {id(a): b for a, b in zip((first, *rest), (*rest, first), strict=True)}
        )
        two = _name(case, rest[0])
        yield _with(case, f"{two} is {one}", {id(rest[0]): first})
        if aval.shape and aval.size:
            memory = Tensor._wrap(np.concatenate([first._array(), rest[0]._array()[-1:]]))
            views = [memory[:-1], memory[1:]]
            for view, tensor in zip(views, (first, rest[0]), strict=True):
                view.requires_grad_(tensor.requires_grad)
            yield _with(case, f"{one} and {two} overlap", {id(first): views[0], id(rest[0]): views[1]})


def _other_numbers(case: Case) -> Iterator[Perturbation]:
    """Numbers that are arguments by themselves."""
    for k, value in enumerate(case.args):
        if (other := _other_number(value)) is not None:
            args = (*case.args[:k], other, *case.args[k + 1 :])
            yield Perturbation(f"argument {k}: {other} in place of {value}", args, case.kwargs)
    for name, value in case.kwargs.items():
        if (other := _other_number(value)) is not None:
            yield Perturbation(f"{name}: {other} in place of {value}", case.args, {**case.kwargs, name: other})


def _other_number(value: Any) -> Any:
    """A number of the same type, or None for what is none."""
    if type(value) is bool:
        return not value
    if type(value) is int:
        return value + 1
    return value * 0.75 + 0.125 if type(value) is float else None


def _captured(case: Case) -> list[Any]:
    given = set(map(id, case.tensors))
    return [i for i in case.inputs if id(i.tensor) not in given]


def _changed_captures(case: Case) -> Iterator[Perturbation]:
    here = functools.partial(Perturbation, args=case.args, kwargs=case.kwargs)
    captured = [i.tensor for i in _captured(case)]
    if captured:
        names = _listed([i.name for i in _captured(case)])
        yield here(f"other values in {names}", change=lambda: [_overwrite(t) for t in captured])
    places = [p for p in case.state.places if p.guarded and _can_change(p)]
    flags = [p for p in places if p.path.shown.endswith("training") and type(p.before) is bool]
    if flags:
        yield here("training and evaluation exchanged", change=lambda: [p.write(not p.before) for p in flags])
    rebound = [p for p in places if isinstance(p.before, Tensor)]
    numbers = [p for p in places if _other_number(p.before) is not None and p not in flags]
    orders = [p for p in places if isinstance(p, Inside) and isinstance(p.owner, list) and len(p.owner) > 1]
    yield from _each(here, rebound, "{} is another tensor", lambda p: _another(p.before))
    yield from _each(here, numbers, "{} changed", lambda p: _other_number(p.before))
    yield from _each(here, orders, "{} in another order", lambda p: [*p.owner[1:], p.owner[0]])


def _can_change(place: Place) -> bool:
    """Whether another value makes sense: not in the code of a function or a class, nor for a tensor of integers."""
    if isinstance(place, RequiresGrad):
        return place.owner.is_leaf and is_inexact(place.owner._dtype())
    return not isinstance(place.owner, (FunctionType, type))


def _each(
    here: Callable[..., Perturbation], places: Sequence[Place], name: str, other: Callable[[Any], Any]
) -> Iterator[Perturbation]:
    """One perturbation for each of the first places, and one for the rest of them together."""
    single, rest = places[:MOST], places[MOST:]
    for group in [*([p] for p in single), *([rest] if rest else [])]:
        values = [other(p) for p in group]

        def change(group: Sequence[Place] = group, values: list[Any] = values) -> None:
            for place, value in zip(group, values, strict=True):
                place.write(value)

        yield here(name.format(_listed([p.path.shown for p in group])), change=change)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _another(tensor: Tensor) -> Tensor:
    """A tensor of the same kind with other values."""
    made = copy.deepcopy(tensor) if tensor.is_leaf else _like(tensor, tensor._array().copy())
    _overwrite(made)
    return made


def _overwrite(tensor: Tensor) -> None:
    """Give a tensor other values of the same signs, or of the same set if it has integers."""
    array = tensor._array()
    if is_inexact(array.dtype):
        other = array * np.linspace(0.75, 1.25, array.size).reshape(array.shape).astype(array.dtype)
    else:
        other = np.logical_not(array) if array.dtype == bool else np.roll(array, 1)
    if array.flags.writeable:
        np.copyto(array, other)
    else:
        tensor._d = np.asarray(other)
