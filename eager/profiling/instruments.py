"""What is swapped in while a profile is recorded: timed forms of ops, functions, methods and backward nodes.

Nothing asks whether a profiler runs: without one, the functions themselves are in their places.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from eager.core import tape
from eager.core.interpreter import IMMEDIATE, on_arrays
from eager.core.later import Later
from eager.core.overriding import AskingFunction
from eager.core.tensor import Tensor
from eager.engine import walks
from eager.engine.language import E, TensorLanguage
from eager.profiling.recorder import Recorder, active
from graphc.ops.operators import BINARY

Instrument = Callable[[Recorder], contextlib.AbstractContextManager[Any]]
# of other rooms: each gives a context in which its own code is timed
instruments: list[Instrument] = []
MODULES = ("nn.functional", "linalg", "fft", "special", "masked", "signal")  # of functions, if they are loaded
# methods that run often, and are no operations
SKIPPED = frozenset(
    "__init__ __new__ __repr__ __str__ __format__ __hash__ __len__ __bool__ __class__ __reduce__ __deepcopy__ __copy__ "
    "__array__ __dir__ __getattribute__ __setattr__ __delattr__ __init_subclass__ __subclasshook__ size dim stride "
    "storage_offset is_contiguous numel nelement data_ptr requires_grad_ retain_grad register_hook backward".split()
)
FUNCTIONS = (types.FunctionType, AskingFunction)
UNNAMED = ("first_call", "method", "function", "call")  # inner functions


def timed(function: Any, name: str) -> Any:
    """`function` as an event called `name`, of calls that give a tensor; those of a trace are none."""

    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = active[-1] if active else None
        if recorder is None or not on_arrays():
            return function(*args, **kwargs)
        around = recorder.opened()
        if around and around[-1].name == name:  # a function that is the op of its name
            return function(*args, **kwargs)
        event, result = recorder.open(name, args, kwargs), None
        try:
            result = function(*args, **kwargs)
            return result
        finally:
            recorder.close(event, result, only_tensors=True)

    functools.update_wrapper(call, function)
    call._timed = function  # type: ignore[attr-defined]
    return call


def restored(names: dict[str, Any]) -> None:
    """Put the functions back that have been replaced by timed ones, also those put there meanwhile."""
    for name, value in list(names.items()):
        original = getattr(value, "_timed", None) if isinstance(value, types.FunctionType) else None
        if original is not None:
            names[name] = original


def _named(attribute: str, function: Any) -> str:
    """What an event is called: `add_` of `Tensor.__iadd__`, and of `Tensor.add_`."""
    name = getattr(function, "__name__", "_") if attribute.startswith("__") else attribute
    if name.startswith(("_", "<")) or name in UNNAMED:
        name = attribute.strip("_")
        name = f"{BINARY[name[1:]]}_" if name[1:] in BINARY and name[0] == "i" else name
    return f"aten::{name}"


@contextmanager
def _ops() -> Iterator[None]:
    """The op language, also its names that are used for the first time."""

    class Timed(TensorLanguage):
        def __getattr__(self, name: str) -> Callable[..., Any]:
            function = timed(super().__getattr__(name), f"aten::{name}")
            setattr(self, name, function)
            return function

    names = vars(E)
    names.update({name: timed(function, f"aten::{name}") for name, function in list(names.items())})
    E.__class__ = Timed
    try:
        yield
    finally:
        E.__class__ = TensorLanguage
        restored(names)


@contextmanager
def _functions() -> Iterator[None]:
    """Public functions: of the package, and of its modules."""
    places = [sys.modules[name] for m in MODULES if (name := f"eager.{m}") in sys.modules]
    top = sys.modules["eager"]
    public: Any = sys.modules["eager.surface.public"]
    find = public.named

    def named(name: str) -> Any:
        found = find(name)
        return timed(found, _named(name, found)) if isinstance(found, FUNCTIONS) else found

    before = [(vars(module), dict(vars(module))) for module in (top, *places)]
    for module in (top, *places):
        names = vars(module)
        for name, value in list(names.items()):
            if isinstance(value, FUNCTIONS) and not name.startswith("_"):
                names[name] = timed(value, _named(name, value))
    public.named = named
    try:
        yield
    finally:
        public.named = find
        for names, _ in before:
            restored(names)


@contextmanager
def _methods() -> Iterator[None]:
    """Methods and operators of tensors."""
    swapped: dict[str, Any] = {}
    for name, value in list(vars(Tensor).items()):
        if name in SKIPPED or (name.startswith("_") and not name.startswith("__")):
            continue
        if isinstance(value, types.FunctionType):
            swapped[name] = value
            setattr(Tensor, name, timed(value, _named(name, value)))
    try:
        yield
    finally:
        for name, value in swapped.items():
            setattr(Tensor, name, value)


@contextmanager
def _backward() -> Iterator[None]:
    """Each node that `backward()` and `autograd.grad` visit."""

    def watched(run: Callable[..., Any]) -> Callable[..., Any]:
        def call(outputs: Any, cotangents: Any, inputs: Any, create_graph: bool, keep: bool) -> Any:
            nodes = [node for node in walks.reachable([t._n for t in outputs]) if not tape.is_leaf(node)]
            functions = [node[tape.BACKWARD] for node in nodes]
            for node, function in zip(nodes, functions, strict=True):
                node[tape.BACKWARD] = _timed_node(function, tape.name_of(node))
            try:
                return run(outputs, cotangents, inputs, create_graph, keep)
            finally:
                for node, function in zip(nodes, functions, strict=True):
                    node[tape.BACKWARD] = function

        return call

    names = vars(IMMEDIATE)
    names.update(backward=watched(IMMEDIATE.backward), gradients=watched(IMMEDIATE.gradients))
    try:
        yield
    finally:
        del names["backward"], names["gradients"]


def _timed_node(function: Any, name: str) -> Any:
    def call(node: Any, g: Any, heap: Any) -> None:
        recorder = active[-1] if active else None
        if recorder is None:
            return function(node, g, heap)
        event = recorder.open_node(name, node)
        try:
            return function(node, g, heap)
        finally:
            recorder.close(event)

    return call


@contextmanager
def _classes(modules: bool) -> Iterator[None]:
    """Steps of optimizers and, if wanted, calls of modules."""
    chosen = [("eager.optim.optimizer", "Optimizer", m, f"Optimizer.{m}#{{0}}.{m}") for m in ("step", "zero_grad")]
    chosen += [("eager.nn.calling", "Called", "__call__", "nn.Module: {0}")] if modules else []
    swapped: list[tuple[Any, str, Any]] = []
    for module, kind, method, form in chosen:
        owner = getattr(sys.modules.get(module), kind, None)
        if owner is not None:
            swapped.append((owner, method, vars(owner)[method]))
            setattr(owner, method, _timed_method(vars(owner)[method], form))
    try:
        yield
    finally:
        for owner, method, function in swapped:
            setattr(owner, method, function)


def _timed_method(function: Any, form: str) -> Any:
    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = active[-1] if active else None
        if recorder is None or not on_arrays():
            return function(self, *args, **kwargs)
        event = recorder.open(form.format(type(self).__name__), args, kwargs)
        try:
            return function(self, *args, **kwargs)
        finally:
            recorder.close(event)

    return call


@contextmanager
def recording(recorder: Recorder, modules: bool = False) -> Iterator[Recorder]:
    """A context in which `recorder` gets the events of all threads. RuntimeError inside of another."""
    if active:
        raise RuntimeError("Profiler is already enabled on this thread")
    for name, value in list(vars(Tensor).items()):
        if isinstance(value, Later):
            hasattr(Tensor, name)  # looks it up, unless its op is gone: made later, it would be made of timed functions
    with ExitStack() as stack:
        for part in (_ops(), _functions(), _methods(), _backward(), _classes(modules)):
            stack.enter_context(part)
        for instrument in instruments:
            stack.enter_context(instrument(recorder))
        active.append(recorder)
        stack.callback(active.clear)
        yield recorder
