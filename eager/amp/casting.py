"""Casts the operands of the functions that are autocast, while they are.

While a thread has tensors autocast, each function in `eager.amp.lists`, and each op that declares it, runs other code:
a detour, which casts and then calls what was there. Otherwise the functions are as if autocast did not exist. Who holds
a function, a module that imported it or a user, need not know.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import threading
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from eager.amp import lists
from eager.core import autocast as core
from eager.core import state
from eager.core.autocast import AutocastState, autocast_state, autocasting_as
from eager.core.interpreter import current_interpreter
from eager.core.overriding import own
from eager.core.state import grad_enabled
from eager.core.tensor import Tensor
from eager.core.views import is_view
from eager.engine.language import E, single
from eager.functional.outputs import tensors_in
from graphc.ops.dtypes import FLOAT32, FLOAT64, is_floating
from graphc.ops.operators import BINARY, COMPARISON, UNARY
from graphc.ops.spec import OPS, Op

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def is_cast(dtype: np.dtype) -> bool:
    """Whether autocast changes tensors of `dtype`."""
    return is_floating(dtype) and dtype != FLOAT64


def cast(x: Any, dtype: np.dtype, cache: bool = False) -> Any:
    """Argument `x` with its tensors, those in a list too, in `dtype`; leaves of float32 once for all, with `cache`."""
    if isinstance(x, Tensor):
        own = x._dtype()
        if own == dtype or not is_cast(own):
            return x
        return _cached(x, dtype) if cache and own == FLOAT32 else E.cast(x, dtype=dtype)
    if x.__class__ in (list, tuple):
        return x.__class__(cast(item, dtype, cache) for item in x)
    return x


class _Cast:
    """A leaf that has been cast, and what it was then."""

    def __init__(self, leaf: Tensor, dtype: np.dtype):
        self.leaf, self.dtype, self.data, self.version = leaf, dtype, leaf._d, _version(leaf)
        self.made = E.cast(leaf, dtype=dtype)

    def holds(self, dtype: np.dtype) -> bool:
        """Whether it still is what casting the leaf gives: it may have been written since."""
        return dtype == self.dtype and self.leaf._d is self.data and _version(self.leaf) == self.version


def _version(tensor: Tensor) -> int:
    return state.version_of(tensor._d) if tensor._d.__class__ is np.ndarray else 0


class _Thread(threading.local):
    """What a thread keeps: how many contexts it is inside of, and the casts of leaves.

    Those are kept by interpreter, as what a trace makes is good for that trace only; then by the id of the leaf.
    """

    def __init__(self) -> None:
        self.nesting = 0
        self.casts: WeakKeyDictionary[Any, dict[int, _Cast]] = WeakKeyDictionary()


thread = _Thread()


def _cached(x: Tensor, dtype: np.dtype) -> Tensor:
    """The cast of `x`: of a leaf that requires grad the same one each time, so that its gradients meet in 16 bits.

    PyTorch goes on with the cast of a leaf that has been written since, which is never wanted; here it is made anew.
    """
    if not (grad_enabled() and x.requires_grad and x.is_leaf and not is_view(x)):
        return E.cast(x, dtype=dtype)
    known = thread.casts.setdefault(current_interpreter(), {})
    found = known.get(id(x))
    if found is None or not found.holds(dtype):
        found = known[id(x)] = _Cast(x, dtype)
    return found.made


def _in(dtype: np.dtype, cache: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    return tuple(cast(x, dtype, cache) for x in args), {name: cast(x, dtype, cache) for name, x in kwargs.items()}


def _promote(now: AutocastState, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    """RuntimeError for a tensor of 16 bits that has another dtype than autocast, unless one of float32 is before it."""
    lower = now.dtype("cpu").numpy
    for x in tensors_in((*args, *kwargs.values())):
        dtype = x._dtype()
        if dtype == FLOAT32:
            return _in(FLOAT32, False, args, kwargs)
        if is_cast(dtype) and dtype != lower:
            raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
    return args, kwargs


POLICIES: dict[str, Callable[[AutocastState, tuple[Any, ...], dict[str, Any]], Arguments]] = {
    "lower": lambda now, args, kwargs: _in(now.dtype("cpu").numpy, now.cache_enabled, args, kwargs),
    "float32": lambda now, args, kwargs: _in(FLOAT32, False, args, kwargs),
    "promote": _promote,
    "dtypes": lambda now, args, kwargs: (tuple(now.dtype("cpu").numpy if is_cast(d) else d for d in args), kwargs),
    "off": lambda now, args, kwargs: (args, kwargs),
}


class Detour:
    """A function, and the other code that it runs while some thread has tensors autocast."""

    def __init__(self, function: FunctionType, policy: str, listed: Callable[[Mapping[str, Any]], bool] | None = None):
        self.function = function
        self.policy = POLICIES[policy]
        self.own = function.__code__
        self.real = FunctionType(
            self.own, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        self.real.__kwdefaults__ = function.__kwdefaults__
        if not hasattr(function, "__wrapped__"):
            function.__wrapped__ = self.real  # type: ignore[attr-defined]  # whose signature is shown meanwhile
        self.listed = listed
        self.signature = inspect.signature(self.real) if listed else None
        self.code = _code_that_calls(self.call, self.own)

    def switch(self, on: bool) -> None:
        """Let the function take the detour, or no longer."""
        self.function.__code__ = self.code if on else self.own

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """What the function does in any thread meanwhile."""
        now = autocast_state()
        if "cpu" not in now.enabled:
            return self.real(*args, **kwargs)
        if self.listed is not None and not self._is_listed(args, kwargs):
            return self.real(*args, **kwargs)
        with autocasting_as(now.with_enabled("cpu", False)):  # what it is made of is not autocast again
            if kwargs.get("out") is None:
                args, kwargs = self.policy(now, args, kwargs)
            return self.real(*args, **kwargs)

    def _is_listed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        assert self.signature is not None and self.listed is not None
        try:
            given = self.signature.bind(*args, **kwargs)
        except TypeError:  # which the function raises, too
            return False
        given.apply_defaults()
        return self.listed(given.arguments)


def _code_that_calls(target: Callable[..., Any], own: CodeType) -> CodeType:
    """The code of a function that hands all to `target`. It closes over as many variables as `own`, as Python asks."""
    free = ", ".join(own.co_freevars)
    scope: dict[str, Any] = {}
    source = (
        f"def outer({free}):\n def detour(*_args, **_kwargs):\n  if 0: ({free})\n  _target = 'target'\n"
        "  return _target(*_args, **_kwargs)\n return detour\n"
    )
    exec(source, scope)
    outer: CodeType = scope["outer"].__code__
    code = next(c for c in outer.co_consts if isinstance(c, CodeType))
    constants = tuple(target if c == "target" else c for c in code.co_consts)
    return code.replace(co_consts=constants, co_name=own.co_name, co_filename=own.co_filename)


_detours: dict[int, Detour] = {}  # by the id of the function, which they keep alive


def _add(function: Any, policy: str, listed: Any = None) -> None:
    if id(function) not in _detours:
        detour = _detours[id(function)] = Detour(function, policy, listed)
        core.add_switch(detour.switch)


def detour_of(function: Any) -> Detour:
    """The detour of a function. KeyError if it takes none."""
    return _detours[id(own(function))]


def _hear(op: Op) -> None:
    """Let a declared op that is autocast take detours: its function, and the operators that are it."""
    if not op.autocast:
        return
    _add(getattr(E, op.name), op.autocast)
    if op.name in {*BINARY.values(), *COMPARISON.values(), *UNARY.values()}:
        _add(single.operator(op), op.autocast)


@functools.cache
def install() -> None:
    """Make the detours. Called when autocast is first used, as it loads whatever may be autocast."""
    for policy, module, name in lists.rows():
        found = importlib.import_module(f"eager.{module}")
        function = getattr(found, "METHODS", {}).get(name) or getattr(found, name)
        _add(own(function), policy, lists.LISTED.get(name))
    OPS.subscribe(_hear)
