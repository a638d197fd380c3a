"""Trading compute for memory: what a part of the forward pass would save is computed again in backward."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from eager import autograd
from eager.autograd.graph import saved_tensors_hooks
from eager.core.autocast import AutocastState, autocast_state, autocasting_as
from eager.core.devices import device
from eager.core.grad_mode import enable_grad
from eager.core.interpreter import current_interpreter, on_arrays
from eager.core.pytree import flatten, tree_map
from eager.core.tensor import Tensor
from eager.engine.function import Function
from eager.engine.language import E
from eager.random import fork_rng, get_rng_state, set_rng_state
from eager.rng.sampling import generator_of
from graphc.scoped import variable

__all__ = [
    "CheckpointError", "checkpoint", "checkpoint_sequential", "get_device_states", "noop_context_fn",
    "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip

Contexts = tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]
_EARLY_STOP: ContextVar[bool | None] = ContextVar("early_stop", default=None)  # what a block says of all calls in it


class CheckpointError(RuntimeError):
    """The recomputation did not do what the forward pass did."""


def noop_context_fn() -> Contexts:
    """Two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def set_checkpoint_early_stop(enable: bool) -> contextlib.AbstractContextManager[Any]:
    """Context: whether the second run of what is checkpointed in it ends as soon as all that was saved is there again;
    if not, it runs to its end."""
    return variable(_EARLY_STOP, enable)


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, keeping only its arguments for backward. As `torch.utils.checkpoint.checkpoint`.

    preserve_rng_state   the second run draws the random numbers of the first
    context_fn           gives the contexts of the first and of the second run, of which compiled programs have none
    early_stop           as `set_checkpoint_early_stop`, which has precedence
    debug                changes nothing: errors say what differs anyway
    determinism_check    "default" compares shape and dtype of what is computed again; "none" does not

    Raises CheckpointError if the second run saves other values than the first.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch "
            "2.9, calling checkpoint without use_reentrant will raise an exception. use_reentrant=False is "
            "recommended, but if you need to preserve the current default behavior, you can pass use_reentrant=True. "
            "Refer to docs for more details on the differences between the two variants.",
            UserWarning,
            stacklevel=2,
        )
        use_reentrant = True
    if use_reentrant and kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if use_reentrant and (context_fn is not noop_context_fn or debug):
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    if current_interpreter().capturing:
        return _captured(function, args, kwargs)
    if not on_arrays():
        return function(*args, **kwargs)
    if use_reentrant:
        return CheckpointFunction.apply(function, get_rng_state() if preserve_rng_state else None, *args)
    if (told := _EARLY_STOP.get()) is not None:
        early_stop = told
    first, second = context_fn()
    run = _Recomputed(lambda: function(*args, **kwargs), preserve_rng_state, determinism_check, second, early_stop)
    with saved_tensors_hooks(run.pack, run.unpack), first:
        return run.function()


def _captured(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call as a segment of the program that is captured: `graphc.execution.segments` computes it again."""
    number = current_interpreter().position()
    given: list[tuple[Tensor, Tensor, Any]] = []

    def begin(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        marked = E.segment(leaf, number=number, place="begin")
        given.append((leaf, marked, marked._d))
        return marked

    def end(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        own = next((t for t, marked, _ in given if leaf is marked), None)
        return E.segment(leaf, number=number, place="end") if own is None else own

    inside_args, inside_kwargs = tree_map(begin, (args, kwargs))
    result = function(*inside_args, **inside_kwargs)
    for t, marked, value in given:
        if marked._d is not value:  # the function has written to its argument
            t.copy_(marked)
    return tree_map(end, result)


class _Complete(Exception):
    """The second run has saved what the first did; what comes after that is not needed."""


class _Recomputed:
    """One checkpointed call: numbers what it saves, and runs it again when the first of that is asked for."""

    def __init__(self, function: Callable[[], Any], preserve_rng_state: bool, determinism_check: str,
                 context: contextlib.AbstractContextManager[Any], early_stop: bool):  # fmt: skip
        self.function, self.context, self.early_stop = function, context, early_stop
        self.rng_state = get_rng_state() if preserve_rng_state else None
        self.autocast = autocast_state()
        self.check = determinism_check != "none"
        self.metadata: list[tuple[Any, Any]] = []
        self.values: dict[int, Tensor] = {}

    def pack(self, tensor: Tensor) -> int:
        self.metadata.append((tuple(tensor.shape), tensor.dtype))
        return len(self.metadata) - 1

    def unpack(self, number: int) -> Tensor:
        if number not in self.values:
            self.recompute()
        return self.values.pop(number)

    def recompute(self) -> None:
        found: list[Tensor] = []

        def collect(tensor: Tensor) -> Tensor:
            found.append(tensor.detach())
            if len(found) == len(self.metadata) and self.early_stop:
                raise _Complete
            return found[-1]

        before, recorded = _as_before(self.rng_state, self.autocast), saved_tensors_hooks(collect, lambda t: t)
        with contextlib.suppress(_Complete), before, enable_grad(), recorded, self.context:
            self.function()
        if len(found) != len(self.metadata):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.metadata)}\nNumber of tensors "
                f"saved during recomputation: {len(found)}."
            )
        for position, (tensor, expected) in enumerate(zip(found, self.metadata, strict=True)):
            got = tuple(tensor.shape), tensor.dtype
            if self.check and got != expected:
                raise CheckpointError(
                    "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                    f"during the forward pass.\ntensor at position {position}:\nsaved metadata: {expected}\n"
                    f"recomputed metadata: {got}"
                )
        self.values = dict(enumerate(found))


@contextlib.contextmanager
def _as_before(state: Any, autocast: AutocastState) -> Iterator[None]:
    """Autocast is as it was, the random generator starts from `state`, and is as it was afterwards."""
    with autocasting_as(autocast), fork_rng(enabled=state is not None):
        if state is not None:
            set_rng_state(state)
        yield


class CheckpointFunction(Function):
    """Runs the function unrecorded, and in backward once more, recorded, with a backward of its own."""

    @staticmethod
    def forward(ctx: Any, function: Any, rng_state: Any, *args: Any) -> Any:
        ctx.function, ctx.rng_state, ctx.autocast = function, rng_state, autocast_state()
        ctx.args = [None if isinstance(a, Tensor) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        args = list(ctx.args)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[place] = tensor.detach().requires_grad_(tensor.requires_grad)
        with _as_before(ctx.rng_state, ctx.autocast), enable_grad():
            outputs = ctx.function(*args)
        several: Sequence[Any] = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        live = [(t, g) for t, g in zip(several, grads, strict=True) if isinstance(t, Tensor) and t.requires_grad]
        if not live:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        autograd.backward([t for t, _ in live], [g for _, g in live])
        return None, None, *(a.grad if isinstance(a, Tensor) else None for a in args)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """A Sequential (or list of functions) in `segments` parts, of which all but the last are checkpointed."""
    parts = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(parts) // segments

    def run(some: Sequence[Any]) -> Callable[[Any], Any]:
        def forward(x: Any) -> Any:
            for part in some:
                x = part(x)
            return x

        return forward

    edges = [size * k for k in range(segments)]
    for start, stop in itertools.pairwise(edges):
        input = checkpoint(run(parts[start:stop]), input, use_reentrant=use_reentrant, **kwargs)
    return run(parts[edges[-1] :])(input)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The numbers of the devices of the tensors among `args`, the CPU apart, and the states of their generators."""
    found = {
        t.device.index or 0: t.device for t in flatten(args)[0] if isinstance(t, Tensor) and t.device.type != "cpu"
    }
    return [*found], [generator_of(device).get_state() for device in found.values()]


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Put back what `get_device_states` gave."""
    for index, state in zip(devices, states, strict=True):
        generator_of(device(device_type or "cuda", index)).set_state(state)
