"""Wrong guards: a compiled function that runs the program of an earlier call where it is not right any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

import numpy as np

import eager as torch
from compare.checking.auditing import audit
from compare.locating.surroundings import STALE
from compare.selftest.fault import Fault, Trial, Trials, of_part
from compare.selftest.planting import Plant, attribute, declared, edited, together, wrapped
from compare.selftest.trials import calls, in_turn, session, tensor
from eager import nn
from graphc.capture.concretization import Concretization
from graphc.capture.state.environment import Environment
from graphc.capture.state.places import Attribute, Cell, ClassOf, DictItem, Inside, Place, RequiresGrad
from graphc.capture.storage.sharing import Sharing
from graphc.capture.tracer import Tracer
from graphc.compiling.guards import Guards
from graphc.compiling.signature import Signatures
from graphc.ops import OPS
from graphc.ops.dims import Sizes

_fault = of_part("guards", STALE)


def _audited(make: Callable[[], tuple[Any, ...]]) -> Trials:
    """`audit` of the function and the arguments that `make` returns."""

    def trials() -> Iterator[Trial]:
        yield Trial("audit", audit(*make()))

    return trials


def signatures(change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Plant:
    """The signatures of calls are `change` of what they are."""

    def wrong(sound: Any) -> Any:
        def of(self: Signatures, args: Any, kwargs: Any) -> Any:
            call = sound(self, args, kwargs)
            return call._replace(signature=change(call.signature))

        return of

    return wrapped(Signatures, "of", wrong)


def _unsigned(blind: Callable[[Any], bool]) -> Plant:
    """Signatures in which everything that is `blind` is taken for the same."""
    return signatures(lambda items: tuple("anything" if blind(item) else item for item in items))


def _is_shape(item: Any) -> bool:
    return isinstance(item, tuple) and all(type(n) is int for n in item)


def _unwatched(blind: Callable[[Place], bool]) -> Plant:
    """Environments that guard no place that is `blind`."""
    sound = Environment.__init__

    def init(self: Environment, *args: Any, **kwargs: Any) -> None:
        sound(self, *args, **kwargs)
        self._guarded = [place for place in self._guarded if not blind(place)]

    return lambda: attribute(Environment, "__init__", init)


def _grad_mode(compile: Any) -> Iterator[Any]:
    x = tensor(3).requires_grad_()
    f = compile(lambda x: x.sin())
    with torch.no_grad():
        yield f(x)
    yield f(x)


def _same_twice(compile: Any) -> Iterator[Any]:
    def write(a: Any, b: Any) -> Any:
        a.mul_(2)
        return a + b

    f, x = compile(write), tensor(4)
    yield f(tensor(3), tensor(3, seed=6))
    yield f(x[:3], x[1:]), x
    yield f(x, x), x


def _global_number(compile: Any) -> Iterator[Any]:
    config = {"scale": True}
    f = compile(lambda x: x * 3 if config["scale"] else x)
    for config["scale"] in (True, False, True):
        yield f(tensor(3))


def _attribute(compile: Any) -> Iterator[Any]:
    config = SimpleNamespace(power="square")
    f = compile(lambda x: x * x if config.power == "square" else x.exp())
    for config.power in ("square", "exp", "square"):
        yield f(tensor(3))


def _closure(compile: Any) -> Iterator[Any]:
    kind = "sin"
    f = compile(lambda x: x.sin() if kind == "sin" else x.cos())
    for kind in ("sin", "cos"):  # noqa: B007
        yield f(tensor(3))


def _list(compile: Any) -> Iterator[Any]:
    layers = [torch.sin]

    def run(x: Any) -> Any:
        for layer in layers:
            x = layer(x)
        return x

    f = compile(run)
    yield f(tensor(3))
    layers.append(torch.cos)
    yield f(tensor(3))


def _module_mode(compile: Any) -> Iterator[Any]:
    model = nn.BatchNorm1d(3)
    f = compile(model)
    for training in (True, False, True):
        model.train(training)
        yield f(tensor(4, 3)), model.running_mean


def _parameter_frozen(compile: Any) -> Iterator[Any]:
    w = tensor(3).requires_grad_()
    f = compile(lambda x: x * w)
    for flag in (True, False, True):
        w.requires_grad_(flag)
        yield f(tensor(3))


def _state_replaced(compile: Any) -> Iterator[Any]:
    state = torch.ones(3)
    f = compile(lambda x: x * state)
    yield f(tensor(3))
    state.fill_(5)
    yield f(tensor(3))


def _buffer_reshaped(compile: Any) -> Iterator[Any]:
    state = torch.ones(3)
    f = compile(lambda x: x * state + state.numel())
    yield f(tensor(3))
    state.data = torch.ones(1)
    yield f(tensor(3))
    state.data = torch.ones(3, dtype=torch.float64)
    yield f(tensor(3))


def _gradients_there(compile: Any) -> Iterator[Any]:
    w = tensor(3).requires_grad_()
    f = compile(lambda x: x * 2 if w.grad is None else x * w.grad)
    yield f(tensor(3))
    (w * 3).sum().backward()
    yield f(tensor(3))


def _scaled_by_state() -> tuple[Any, ...]:
    state = SimpleNamespace(scale=2.0, table=[1.0, 2.0])
    return lambda x: x * state.scale + state.table[0], tensor(3)


def _undecided() -> AbstractContextManager[None]:
    check = OPS["decided"].check
    assert check is not None
    return declared(OPS["decided"], check=check._replace(ok=lambda xp, x, expected: xp.all(x == x)))


_UNHELD = edited(Guards, "__init__", ("program.sources if isinstance(s, Captured)", "()"))

FAULTS: tuple[Fault, ...] = (
    _fault("shapes are not in the signature", _unsigned(_is_shape), in_turn(
        calls(lambda x: x.sum() * x.shape[0] + torch.ones(x.shape[0]).sum(), *((tensor(n),) for n in (3, 4, 7, 3))),
        calls(lambda x: x.reshape(-1) * x.shape[1], *((tensor(*shape),) for shape in ((2, 3), (3, 2), (2, 4)))))),
    _fault("dtypes are not in the signature", _unsigned(lambda i: isinstance(i, np.dtype)),
           calls(lambda x: x / 3 + torch.zeros(3, dtype=x.dtype), (tensor(3),), (tensor(3).double(),))),
    _fault("requires_grad is not in the signature", _unsigned(lambda i: type(i) is bool),
           calls(lambda x: x.sin(), (tensor(3),), (tensor(3).requires_grad_(),))),
    _fault("the gradient mode is not in the signature", _unsigned(lambda i: type(i) is bool), session(_grad_mode)),
    _fault("numbers are not in the signature", _unsigned(lambda i: type(i) is bool), calls(
        lambda x, negative: -x if negative else x * 2, *((tensor(3), negative) for negative in (True, False, True)))),
    _fault("strings are not in the signature", _unsigned(lambda i: isinstance(i, str)), calls(
        lambda x, reduction: x.sum() if reduction == "sum" else x.mean(),
        *((tensor(3), reduction) for reduction in ("sum", "mean", "sum")))),
    _fault("no Python state is watched", _unwatched(lambda place: True),
           in_turn(_audited(_scaled_by_state), session(_attribute))),
    _fault("entries of dicts are not watched", _unwatched(lambda p: isinstance(p, (DictItem, Inside))),
           session(_global_number)),
    _fault("attributes are not watched", _unwatched(lambda p: isinstance(p, (Attribute, DictItem))),
           session(_attribute)),
    _fault("enclosing variables are not watched", _unwatched(lambda p: isinstance(p, Cell)), session(_closure)),
    _fault("contents of lists are not watched", _unwatched(lambda p: isinstance(p, (Inside, DictItem))),
           session(_list)),
    _fault("training and evaluation are not told apart", together(
        _unwatched(lambda p: p.key == "training"), edited(Concretization, "guard", (
            "self._state", "'training' in what or self._state"))), session(_module_mode)),
    _fault("requires_grad of parameters is not watched", together(
        _unwatched(lambda p: isinstance(p, RequiresGrad)), _UNHELD),
        session(_parameter_frozen)),
    _fault("captured tensors are not looked at", together(
        _unwatched(lambda p: isinstance(p, ClassOf)), _UNHELD),
        session(_buffer_reshaped)),
    _fault("captured tensors are constants", edited(Tracer, "_capture", (
        "if self.computed is", "if tensor._n is None and self.state.owners.get(id(tensor)) is None:\n"
        "        self.state.fresh[id(tensor)] = tensor\n    if self.computed is")),
        session(_state_replaced)),
    _fault("decisions are not looked at", _undecided, calls(
        lambda x: x.sin() if x.sum() > 0 else x.exp(), *((tensor(3) * sign,) for sign in (1, -1, 1)))),
    _fault("conditions on sizes are not looked at", lambda: attribute(Sizes, "broken", lambda self, sizes: None),
           calls(lambda x: x.sum() if x.shape[0] > 5 else x * 2, *((tensor(n),) for n in (3, 4, 8, 9)))),
    _fault("shared memory is not looked at", lambda: attribute(Sharing, "holds", lambda self, tensors: True),
           session(_same_twice)),
    _fault("conditions are not asked for",
           lambda: attribute(Guards, "lines", lambda self, *args: [" alone = False"]),
           in_turn(calls(lambda x: x * 2 if x.is_contiguous() else x * 3, (tensor(3, 3),), (tensor(3, 3).T,)),
                   session(_gradients_there))),
)  # fmt: skip
