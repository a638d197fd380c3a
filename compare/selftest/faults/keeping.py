"""Wrong memory of what was: numbers of earlier calls, what called functions change, offsets, buffers, streams, keys."""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

import eager as torch
from compare.locating.lowerings import TO_NUMPY
from compare.locating.surroundings import RANDOM, STALE, STATE
from compare.selftest.fault import Expected, Fault, Trials, of_part
from compare.selftest.faults.guards import signatures
from compare.selftest.planting import attribute, edited, entry, together, wrapped
from compare.selftest.trials import calls, numbers, program, session, tensor
from graphc.capture import late_draws, number
from graphc.capture.number import Number
from graphc.capture.state import environment
from graphc.capture.state.append_only import AppendOnly
from graphc.capture.state.executed import ExecutedReachability
from graphc.capture.state.lifted_numbers import LiftedNumber
from graphc.capture.storage import memory
from graphc.compiling.signature import Attributes, Identities
from graphc.compiling.specializations import Specialization
from graphc.execution import host_packs, prechecks, steps
from graphc.ops.aval import Literal

_guard, _state, _random = (
    of_part("guards", STALE),
    of_part("functionalization", STATE),
    of_part("random numbers", RANDOM),
)


def _x(*shape: int, seed: int = 5) -> Any:
    return tensor(*(shape or (3,)), seed=seed)


def _autocast(compile: Any) -> Iterator[Any]:
    f = compile(lambda x: x @ x)
    for on in (False, True, False):
        with torch.autocast("cpu", enabled=on):
            yield f(_x(3, 3))


def _twice(x: Any) -> Any:
    return x * 2


def _scaled(scale: float) -> Any:
    x = _x()
    x.scale = scale
    return x


def _first_value(sound: Any) -> Any:
    """A number that varies is what it was when that was noticed."""
    known: dict[Any, Any] = {}

    def of(value: Any, position: Any, found: dict[int, Any], place: int) -> Any:
        return sound(known.setdefault(position, value), position, found, place)

    return staticmethod(of)


_AS_CALLED = wrapped(environment, "MOST", lambda most: 0)
_config, _total = SimpleNamespace(scale="small"), SimpleNamespace(sum=None, steps=[])


def _factor(x: Any) -> Any:
    return x * (2 if _config.scale == "small" else 3)


def _called_reads(compile: Any) -> Iterator[Any]:
    f = compile(lambda x: _factor(x) + 1)
    for _config.scale in ("small", "large", "small"):
        yield f(_x())


def _add(x: Any) -> None:
    _total.sum = x if _total.sum is None else _total.sum + x


def _called_changes(compile: Any) -> Iterator[Any]:
    _total.sum = torch.zeros(3)

    def run(x: Any) -> Any:
        _add(x * 2)
        return x + 1

    f = compile(run)
    for k in range(4):
        yield f(_x(seed=k)), _total.sum


def _kept(compile: Any) -> Iterator[Any]:
    latest, older = deque[Any](), list[Any]()

    def run(x: Any) -> Any:
        latest.appendleft(x * 2)
        latest.appendleft(x * 3)
        older.append(x + 1)
        older.append(x + 2)
        return x.sum()

    f = compile(run)
    for k in range(3):
        yield f(_x(seed=k)), list(latest), list(older)


def _view_of_view(x: Any) -> Any:
    y = x * 1
    return y * y[2:][1:].storage_offset()


def _returned_chain(compile: Any) -> Iterator[Any]:
    f, x = compile(lambda x: (x * 2).t()[1:].t()), _x(4, 4)
    yield f(x)
    g = compile(lambda x: x.t()[1:])
    view = g(x)
    view.mul_(2)
    yield view, x


def _held(compile: Any) -> Iterator[Any]:
    """Somebody else looks at the memory that a call writes."""
    state = torch.zeros(3)
    seen = state.numpy()
    f = compile(lambda x: state.add_(x).sum())
    for k in range(3):
        yield f(_x(seed=k)), torch.from_numpy(seen.copy())


def _takes_new_memory(tensor: Any, value: Any, *held: int) -> None:
    tensor._d = value


def _training(optimizer: Callable[[Any], Any]) -> Trials:
    def training(compile: Any) -> Iterator[Any]:
        weights = [torch.nn.Parameter(_x(seed=k).double()) for k in range(3)]
        chosen = optimizer(weights)

        def step(x: Any) -> Any:
            chosen.zero_grad()
            loss: Any = sum((w * x.double() * (k + 1)).tanh().sum() for k, w in enumerate(weights))
            loss.backward()
            chosen.step()
            return loss.detach()

        f = compile(step)
        for k in range(4):
            yield f(_x(seed=k)), [w.detach().clone() for w in weights]

    return session(training)


def _late(compile: Any) -> Iterator[Any]:
    f = compile(lambda x: (torch.poisson(x * 3), torch.rand(3)))
    for k in range(3):
        yield f(_x(seed=k)), torch.rand(1)


def _undecided_draws(compile: Any) -> Iterator[Any]:
    def choose(x: Any) -> Any:
        noise = torch.rand(4)
        return noise + 1 if noise.sum() > 2 else torch.rand(4) - noise

    f = compile(choose)
    for _ in range(8):
        yield f(_x(4)), torch.rand(1)


@contextmanager
def _with_cache() -> Iterator[None]:
    """Programs are kept, in a folder that is empty before and gone afterwards."""
    from graphc.lowering import cache

    with (
        tempfile.TemporaryDirectory() as folder,
        attribute(cache, "_off", 0),
        attribute(cache, "WORTHWHILE", 0),
        entry(os.environ, "GRAPHC_CACHE", "1"),
        entry(os.environ, "GRAPHC_CACHE_DIR", folder),
    ):
        yield


def _tables(compile: Any) -> Iterator[Any]:
    with _with_cache():
        for table in ([1.0, 2.0, 3.0], [3.0, 1.0, 2.0]):
            numbers = np.array(table, np.float32)
            yield compile(lambda x, numbers=numbers: x * torch.from_numpy(numbers).detach().clone())(_x())


def _nameless() -> Any:
    """Keys of programs that do not say what constants hold."""
    from graphc.lowering import keys

    def described(value: Any) -> Iterator[str]:
        if isinstance(value, Literal):
            yield f"{value.array.dtype}{value.array.shape}"
        else:
            yield from sound(value)

    sound = keys._described
    return attribute(keys, "_described", described)


def _freed_early() -> Any:
    """Buffers are given to others once they have been read for the first time."""
    from graphc.lowering.host import source

    def first_uses(reads: Any) -> dict[Any, int]:
        return {thing: k for k, things in reversed(list(enumerate(reads))) for thing in things}

    return attribute(source, "last_uses", first_uses)


_long = numbers(4)

FAULTS: tuple[Fault, ...] = (
    _guard("functions as arguments are one", lambda: attribute(Identities, "__call__", lambda self, value: 0),
           calls(lambda x, fn: fn(x), *((_x(), fn) for fn in (_twice, lambda x: x * 3, _twice)))),
    _guard("autocast is not in the signature", signatures(lambda items: (*items[:3], None, *items[4:])),
           session(_autocast)),
    _guard("attributes of tensors are not in the signature", signatures(
        lambda items: tuple(i for i in items if not isinstance(i, Attributes))),
           calls(lambda x: x * x.scale, *((_scaled(k),) for k in (2.0, 3.0, 2.0)))),
    _guard("numbers that vary are those of the first call", wrapped(LiftedNumber, "of", _first_value),
           calls(lambda x, k: x * k, *((_x(), k) for k in (2.0, 3.0, 4.0, 5.0)))),
    _guard("what called functions read is not watched", together(
        _AS_CALLED, lambda: attribute(ExecutedReachability, "_noticed", lambda self, *event: None)),
           session(_called_reads)),
    _state("what called functions change is not lifted", together(
        _AS_CALLED, lambda: attribute(ExecutedReachability, "_noticed", lambda self, *event: None)),
           session(_called_changes)),
    _state("what is appended is turned round", edited(AppendOnly, "_write", (
        "extend(added.last)", "extend(added.last[::-1])"), ("reversed(added.first)", "added.first")), session(_kept)),
    _state("what is appended is lost", wrapped(AppendOnly, "finish", lambda sound: lambda self: sound(self) and None),
           session(_kept)),
    _state("offsets of views of views are forgotten",
           lambda: attribute(memory, "_further", lambda offset, apart, of, to: apart),
           program(_view_of_view, numbers(8))),
    _state("steps to a returned view in reverse order", lambda: entry(steps.SHARED, "view", lambda tensor, returned: (
        steps.view(tensor, returned._replace(steps=returned.steps[::-1])))),
           session(_returned_chain)),
    _state("what is written has new memory", together(
        lambda: entry(steps.SHARED, "replace", _takes_new_memory),
        lambda: entry(steps.SHARED, "overwrite", _takes_new_memory)), session(_held)),
    _state("optimizers' state in another order", edited(host_packs, "_parts", (
        "return parts", "return parts[::-1] if len({p.shape for p in parts}) == 1 else parts")),
           _training(lambda weights: torch.optim.SGD(weights, 0.1, momentum=0.9))),
    _state("differences of numbers the other way round", edited(Number, "_binary", (
        "((b, a) if reflected else (a, b))", "((a, b) if reflected else (b, a))")),
           program(lambda x: x * (x.sum().item() - 3), _long)),
    _state("quotients of numbers the other way round", edited(Number, "_divided", (
        "(other, self) if reflected else (self, other)", "(self, other) if reflected else (other, self)")),
           program(lambda x: x * (x.sum().item() / 3), _long)),
    _state("numbers are promoted as tensors are", edited(number, "_rank", (
        "isinstance(x, Symbol)", "type(x) is Number:\n        return x.symbol.dtype, 2\n    if isinstance(x, Symbol)")),
           program(lambda x: x * (x.sum().item() / 2), np.arange(4))),
    _random("late draws begin where the call began", edited(late_draws, "_redrawn", (
        "generator._continue(state)", "pass")),
            session(_late)),
    _random("what a path has drawn that is not taken counts", lambda: entry(
        steps.SHARED, "rewind", lambda generators, marks: None), session(_undecided_draws)),
    _guard("keys of programs without constants", _nameless, session(_tables)),
    Fault("host: buffers freed once they are read", "lowerings", _freed_early, Expected(part=TO_NUMPY),
          program(lambda x: (x.sin() * x.cos() + x.exp()) * x.sin(), _long, modes=("numpy",))),
    _guard("any path is the path of the values", lambda: attribute(
        Specialization, "agrees", lambda self, values: True), calls(
            lambda x: x.sin() if x.sum() > 0 else x.exp() if x.sum() > -4 else x.cos(),
            *((_x() * scale,) for scale in (1, -1, -9, 1, -1, -9)))),
    Fault("lowering of index: what is asked of one array is asked of all", "lowerings", lambda: attribute(
        prechecks, "_implied", lambda graph, wanted, asked: True), Expected("index", "run-time check"), calls(
               lambda x, y, at: x[at] + y[at], *((_x(9), _x(4), torch.tensor(at)) for at in ([1, 2], [3, 0], [1, 7])))),
)  # fmt: skip
