"""Statements that are no single op: views, in-place writes, control flow, random numbers, gradient modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from compare.fuzzing.program import Statement
from graphc.ops.dtypes import is_floating

if TYPE_CHECKING:
    from compare.fuzzing.generator import Draft, Value

Form = Callable[["Draft"], bool]


def _is_float(tensor: Any) -> bool:
    return is_floating(tensor._array().dtype)


def _is_tame(tensor: Any) -> bool:
    """A float tensor of values that may go through a few more operations."""
    array = tensor._array()
    return is_floating(array.dtype) and array.size > 0 and bool((abs(array) < 100).all())


def _of_dims(least: int) -> Callable[[Any], bool]:
    return lambda tensor: tensor.dim() >= least and tensor.numel() > 0


def _added(draft: Draft, value: Value, expression: str, *more: str) -> bool:
    """Add a statement that makes one variable of `value`, and perhaps of others."""
    name = draft.fresh()
    return draft.run(Statement(f"{name} = {expression}", (name,), (value.name, *more)), value.origin)


def view(draft: Draft) -> bool:
    """Another tensor on the same memory."""
    value = draft.pick(_of_dims(1))
    if value is None:
        return False
    n, dims, x = value.tensor.shape[0], len(value.tensor.shape), value.name
    start = int(draft.rng.integers(0, n))
    choices = [f"{x}[{start}:]", f"{x}[::2]", f"{x}[..., -1]", f"{x}.unsqueeze({int(draft.rng.integers(-1, dims))})",
               f"{x}.narrow(0, {start}, {n - start})", f"{x}.flatten()", f"{x}[{start}]", f"{x}.view(-1)"]  # fmt: skip
    if dims > 1:
        choices += [f"{x}.transpose(0, -1)", f"{x}.movedim(0, -1)", f"{x}.diagonal()", f"{x}.mT"]
    return _added(draft, value, choices[draft.rng.integers(len(choices))])


def in_place(draft: Draft) -> bool:
    """A write to memory that earlier variables, or an argument, may share."""
    target = draft.pick(lambda t: _is_float(t) and t.numel() > 0 and not (t.is_leaf and t.requires_grad))
    if target is None:
        return False
    other = draft.pick(lambda t: _is_tame(t) and t.shape == target.tensor.shape)
    x = target.name
    y = "0.5" if other is None or draft.rng.random() < 0.3 else other.name
    choices = [f"{x}.mul_({y})", f"{x}.add_({y})", f"{x}.sub_({y}, alpha=0.25)", f"{x}.tanh_()", f"{x}.clamp_(-1, 1)",
               f"{x}.zero_()", f"{x}.fill_(0.75)"]  # fmt: skip
    if y != "0.5":
        choices += [f"{x}.copy_({y})", f"{x}[{x} > {y}] = 0.5"]
    if len(target.tensor.shape):
        choices += [f"{x}[0] = 1.5", f"{x}[..., -1] += 0.5", f"{x}[::2] *= 2"]
    text = choices[draft.rng.integers(len(choices))]
    reads = (x,) if y == "0.5" else (x, y)
    # a new name for what was written: what comes later reads that
    name = draft.fresh()
    return draft.run(Statement(f"{text}\n{name} = {x}.clone()", (name,), reads, writes=(x,)), target.origin)


def branch(draft: Draft) -> bool:
    """Python decides on a value."""
    value = draft.pick(_is_tame)
    if value is None:
        return False
    name, x = draft.fresh(), value.name
    threshold = round(float(draft.rng.uniform(-1, 1)), 2)
    text = f"if {x}.sum() > {threshold}:\n    {name} = torch.sin({x})\nelse:\n    {name} = {x} * 0.5 - 1"
    return draft.run(Statement(text, (name,), (x,)), value.origin)


def cond(draft: Draft) -> bool:
    """A branch inside the program."""
    value = draft.pick(_is_tame)
    return value is not None and _added(
        draft, value, f"graphc.cond({value.name}.sum() > 0, lambda a: torch.cos(a) * 2, lambda a: a * a, {value.name})"
    )


def loop(draft: Draft) -> bool:
    """A loop inside the program, of a number of steps that is known or not."""
    value = draft.pick(lambda t: _is_tame(t) and t.dim() > 0)
    if value is None:
        return False
    x, steps = value.name, int(draft.rng.integers(1, 4))
    choices = [
        f"graphc.fori_loop(0, {steps}, lambda i, a: torch.tanh(a) + 0.1 * i, {x})",
        f"graphc.while_loop(lambda a: a.abs().sum() > 0.5, lambda a: a * 0.5, {x})",
        f"graphc.scan(lambda c, a: (c * 0.5 + a, torch.sin(c)), {x}[0] * 0, {x})[1]",
    ]
    return _added(draft, value, choices[draft.rng.integers(len(choices))])


def random_numbers(draft: Draft) -> bool:
    """A draw from the default generator."""
    value = draft.pick(_is_tame)
    if value is None:
        return False
    x = value.name
    choices = [f"{x} + torch.rand_like({x})", f"torch.nn.functional.dropout({x}, 0.5)", f"{x} * torch.randn({x}.shape)",
               f"torch.bernoulli(torch.sigmoid({x})) + {x}"]  # fmt: skip
    return _added(draft, value, choices[draft.rng.integers(len(choices))])


def gradient_mode(draft: Draft) -> bool:
    """A value through which no gradient goes."""
    value = draft.pick(_is_tame)
    if value is None:
        return False
    x, name = value.name, draft.fresh()
    if draft.rng.random() < 0.5:
        return _added(draft, value, f"{x}.detach() * 2")
    text = f"with torch.no_grad():\n    {name} = {x} * 3 + 1"
    return draft.run(Statement(text, (name,), (x,)), value.origin)


def broadcast(draft: Draft) -> bool:
    """Arithmetic between any two tensors that broadcast, or with a number."""
    value = draft.pick(_is_tame)
    other = draft.pick(_is_tame)
    if value is None or other is None:
        return False
    sign = ["+", "-", "*"][draft.rng.integers(3)]
    y = other.name if draft.rng.random() < 0.7 else str(round(float(draft.rng.uniform(-2, 2)), 2))
    return _added(draft, value, f"{value.name} {sign} {y}", *([other.name] if y == other.name else []))


def selection(draft: Draft) -> bool:
    """Elements that the values pick: written back to their places, or a result whose size only the values know."""
    value = draft.pick(lambda t: _is_tame(t) and t.dim() > 0)
    if value is None:
        return False
    x, name = value.name, draft.fresh()
    mask = f"({x} > {round(float(draft.rng.uniform(-1, 1)), 2)})"
    choices = [f"{x}[{mask}] * 2", f"{x}[{mask}].sum()", f"torch.masked_select({x}, {mask}).tanh()",
               f"{x}.flatten()[{mask}.flatten().nonzero()[:, 0]]", f"{x}.detach().round().unique()",
               f"torch.nn.functional.one_hot({mask}.long()) * {x}.unsqueeze(-1)",
               f"{x}.flatten().repeat_interleave({mask}.flatten().long())"]  # fmt: skip
    if draft.rng.random() < 0.5:
        return _added(draft, value, choices[draft.rng.integers(len(choices))])
    writes = [f"{name}[{mask}] += 0.5", f"{name}[{mask}] = {x}[{mask}].cos() * 2",
              f"{name}[{mask}] = {name}.flatten()[:{x}[{mask}].shape[0]] + {x}[{mask}]"]  # fmt: skip
    text = f"{name} = {x} * 1\n{writes[draft.rng.integers(len(writes))]}"
    return draft.run(Statement(text, (name,), (x,)), value.origin)


FORMS: tuple[Form, ...] = (view, in_place, branch, cond, loop, random_numbers, gradient_mode, broadcast, selection)
