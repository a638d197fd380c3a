"""Wrong reading and writing of state: what a captured program does to tensors, views, `.grad` and Python objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

import eager as torch
from compare.locating.surroundings import STATE
from compare.selftest.fault import Fault, of_part
from compare.selftest.planting import Plant, attribute, declared, edited, entry, wrapped
from compare.selftest.trials import in_turn, numbers, program, session
from graphc.autodiff import reverse
from graphc.capture import Effect, GradOf, tracer
from graphc.capture.gradients import Autograd
from graphc.capture.grads import Grads
from graphc.capture.sources import LeafFlag
from graphc.capture.state.environment import Environment
from graphc.capture.storage.memory import Memories
from graphc.capture.storage.mutation import Mutation
from graphc.capture.storage.results import Results
from graphc.execution import call_code, steps
from graphc.execution.gradients import Gradients
from graphc.ops import OPS

_fault = of_part("functionalization", STATE)
Effects = Callable[[list[Effect]], list[Effect]]


def inverse(op: str, wrong: Callable[..., Any]) -> Plant:
    """A write through the view `op` reaches the whole by `wrong`."""
    lens = OPS[op].lens
    assert lens is not None
    return lambda: declared(OPS[op], lens=lens._replace(put=wrong))


def effects(change: Effects) -> Plant:
    """What a program leaves behind goes through `change`."""
    return wrapped(tracer, "effects_of", lambda sound: lambda traced: change(sound(traced)))


def _exchanged(effects: list[Effect]) -> list[Effect]:
    """The values of the first two effects exchanged."""
    if len(effects) < 2:
        return effects
    a, b, *rest = effects
    return [a._replace(id=b.id), b._replace(id=a.id), *rest]


def _last_share(grads: dict[int, Any], key: int, d: Any) -> None:
    grads[key] = d


def _memory_replaced(tensor: Any, data: Any) -> None:
    tensor._d = data


def _completed(value: float) -> Plant:
    """Gradients that have not arrived have this value."""
    others = f"{{k: np.full(a.shape, {value}, a.dtype) for k, a in enumerate(self.avals)}}"
    return edited(Gradients, "shares", ("arrived = {", f"arrived = {others} | {{"))


X, Y, CUBE = numbers(4), numbers(4, seed=6), numbers(2, 2, 2)


def _through_slice(x: Any) -> Any:
    y = x * 1
    y[1:3].mul_(x[:2])
    return y * 2


def _through_permutation(x: Any, z: Any) -> Any:
    y = x * 1
    y.permute(1, 2, 0).mul_(z)
    return y * 2


def _through_reshape(x: Any) -> Any:
    y = x * 1
    y.view(4, 2)[0] = 0.5
    return y * 2


def _real_part(z: Any) -> Any:
    y = z * 1
    y.real.mul_(2)
    return y * 2


def _complex_numbers() -> np.ndarray:
    return numbers(3) + 1j * numbers(3, seed=6)


def _view_read_after(x: Any) -> Any:
    y = x * 1
    view = y[1:]
    y.mul_(3)
    return view * 2


def _argument_written(compile: Any) -> Iterator[Any]:
    f = compile(_writes)
    x, y = _tensor(X), _tensor(Y)
    for _ in range(3):
        yield f(x, y), x, y


def _writes(x: Any, y: Any) -> Any:
    x.mul_(2)
    y.add_(x)
    return x + y


def _tensor(array: np.ndarray) -> Any:
    return torch.from_numpy(array.copy())


def _returned_itself(compile: Any) -> Iterator[Any]:
    f = compile(lambda x: x.add_(1))
    x = _tensor(X)
    y = f(x)
    y.mul_(2)
    yield x, y
    yield x is f(x)


def _returned_view(compile: Any) -> Iterator[Any]:
    f = compile(lambda x: (x * 2, x[1:]))
    x = _tensor(X)
    _, view = f(x)
    view.mul_(5)
    yield x, view


def _results_share(compile: Any) -> Iterator[Any]:
    def both(x: Any) -> Any:
        y = x * 2
        return y, y[1:]

    whole, part = compile(both)(_tensor(X))
    part.zero_()
    yield whole, part


def _views_held(compile: Any) -> Iterator[Any]:
    """A view that was made before follows what the compiled function _writes."""
    state = torch.zeros(4)
    view = state[1:3]

    def accumulate(x: Any) -> Any:
        state.add_(x)
        return state.sum()

    f = compile(accumulate)
    for _ in range(3):
        yield f(_tensor(X)), view, state


def _overlapping(compile: Any) -> Iterator[Any]:
    def shift(a: Any, b: Any) -> Any:
        a.mul_(2)
        return a + b

    memory = _tensor(numbers(5))
    f = compile(shift)
    for _ in range(2):
        yield f(memory[:-1], memory[1:]), memory


def _training(compile: Any) -> Iterator[Any]:
    w, b = (_tensor(a).requires_grad_() for a in (X, Y))

    def step(x: Any) -> Any:
        loss = ((w * x + b) ** 2).sum()
        loss.backward()
        with torch.no_grad():
            for p in (w, b):
                p -= 0.01 * p.grad
        return loss.detach()

    f = compile(step)
    for _ in range(3):
        yield f(_tensor(Y)), w, b, w.grad, b.grad


def _zeroed(compile: Any) -> Iterator[Any]:
    w = _tensor(X).requires_grad_()
    (w * 3).sum().backward()

    def clear(x: Any) -> Any:
        w.grad = None
        return w * x

    compile(clear)(_tensor(Y))
    yield w.grad is None


def _flagged(compile: Any) -> Iterator[Any]:
    def freeze(x: Any) -> Any:
        x.requires_grad_(True)
        return x * 2

    x = _tensor(X)
    y = compile(freeze)(x)
    yield x.requires_grad, y


def _counting(compile: Any) -> Iterator[Any]:
    self = SimpleNamespace(count=0, last=None)

    def forward(x: Any) -> Any:
        self.count += 1
        self.last = x * 2
        return self.last + self.count

    f = compile(forward)
    for _ in range(3):
        yield f(_tensor(X)), self.count, self.last


def _apart(x: Any, y: Any) -> Any:
    """Two results, each of one argument."""
    return x * 2, y * 3


def _one_of_two(compile: Any) -> Iterator[Any]:
    x = _tensor(X).requires_grad_()
    a, _ = compile(lambda x: (x.sin(), x.exp()))(x)
    a.sum().backward()
    yield x.grad


def _used_twice(x: Any) -> Any:
    return x.sin() * x.cos() + x


_COPIED = edited(Results, "_returned", (
    "tracer.state.owner_of(tensor) or self._grads.get(id(tensor))", "None"))  # fmt: skip
_whole_state = in_turn(program(_writes, X, Y), session(_argument_written))

FAULTS: tuple[Fault, ...] = (
    _fault("a write through a slice is lost", inverse("slice", lambda F, whole, value, **region: whole),
           program(_through_slice, X)),
    _fault("a permutation is not inverted",
           inverse("permute", lambda F, whole, value, dims: F.permute(value, dims=dims)),
           program(_through_permutation, CUBE, numbers(2, 2, 2, seed=6))),
    _fault("a reshaped write arrives reversed", inverse(
        "reshape", lambda F, whole, value, shape: F.reshape(F.flip(value, axis=(0,)), shape=whole.shape)),
        program(_through_reshape, numbers(8))),
    _fault("the imaginary part is lost", inverse("real", lambda F, whole, value: F.complex(value, F.real(whole))),
           program(_real_part, _complex_numbers())),
    _fault("views are not read anew", edited(Memories, "write", ("memory.version += 1", "pass")),
           program(_view_read_after, X)),
    _fault("written arguments are forgotten", edited(
        Memories, "write", ("self.written[id(memory)] = memory", "pass")), _whole_state),
    _fault("the last effect is forgotten", effects(lambda effects: effects[:-1]), _whole_state),
    _fault("written back to the wrong tensor", effects(_exchanged), _whole_state),
    _fault("the history of writes is lost", wrapped(Mutation, "_write",
        lambda sound: lambda self, memory, whole, recorded: sound(self, memory, whole, False)),
           program(_through_slice, X)),
    _fault("overlapping arguments are taken apart", lambda: attribute(Mutation, "_overlapping", lambda self, owner: []),
           session(_overlapping)),
    _fault("a tensor comes back as a copy", _COPIED, session(_returned_itself)),
    _fault("a view comes back as a copy", lambda: attribute(Results, "_base", lambda self, memory: None),
           session(_returned_view)),
    _fault("results share no memory", lambda: attribute(Results, "_base", lambda self, memory: None),
           session(_results_share)),
    _fault("a view comes back as a copy, of one call", lambda: attribute(Results, "_base", lambda self, memory: None),
           program(lambda x: x.view(-1), X)),
    _fault("a tensor comes back as a copy, of one call", _COPIED,
           program(lambda x: x, X)),
    _fault("a write replaces the memory, of one call", lambda: entry(steps.SHARED, "overwrite", _memory_replaced),
           program(_writes, X, Y)),
    _fault("a write replaces the memory", lambda: entry(steps.SHARED, "overwrite", _memory_replaced),
           session(_views_held)),
    _fault(".grad is accumulated twice", edited(Grads, "_add", (
        "old, tracer = self.get_grad(tensor),", "g, old, tracer = g + g, self.get_grad(tensor),")), session(_training)),
    _fault(".grad is not accumulated", edited(Grads, "_add", ("self.get_grad(tensor)", "None")),
           session(_training)),
    _fault(".grad is not cleared", lambda: attribute(call_code, "_cleared", lambda program: []),
           session(_zeroed)),
    _fault(".grad is not written", effects(lambda effects: [e for e in effects if not isinstance(e.target, GradOf)]),
           session(_training)),
    _fault("requires_grad is not set",
           effects(lambda effects: [e for e in effects if not isinstance(e.target, LeafFlag)]),
           session(_flagged)),
    _fault("Python attributes are not written", lambda: attribute(Environment, "written", lambda self: []),
           session(_counting)),
    _fault("results have no history", edited(Autograd, "history", ("History.LIVE", "History.NONE")),
           program(_used_twice, X)),
    _fault("missing cotangents are ones", _completed(1.0), session(_one_of_two)),
    _fault("missing cotangents are zeros", _completed(0.0),
           program(_apart, X, Y)),
    _fault("of several shares of a gradient the last", lambda: attribute(reverse, "_add", _last_share),
           program(_used_twice, X)),
)  # fmt: skip
