"""`graphc.compile`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any, ParamSpec, Protocol, TypeVar, Unpack, overload

from eager.nn import Module
from graphc import errors
from graphc.compiling.compiled import Compiled
from graphc.compiling.module import CompiledModule
from graphc.compiling.options import Keywords, Options
from graphc.compiling.sharded import Shardings
from graphc.passes import settings_for
from graphc.passes.settings import USUAL

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=Module)


class Decorator(Protocol):
    """What `graphc.compile` returns where it gets options only."""

    @overload
    def __call__(self, fn: M, /) -> M: ...

    @overload
    def __call__(self, fn: Callable[P, R], /) -> Compiled[P, R]: ...


@overload
def compile(fn: M, **options: Unpack[Keywords]) -> M: ...


@overload
def compile(fn: Callable[P, R], **options: Unpack[Keywords]) -> Compiled[P, R]: ...


@overload
def compile(fn: None = None, **options: Unpack[Keywords]) -> Decorator: ...


def compile(
    fn: Callable[..., Any] | None = None,
    *,
    device: str | None = None,
    strict: bool = False,
    level: int = USUAL,
    without: str | Collection[str] = (),
    dynamic: bool | None = None,
    max_retraces: int | None = None,
    backend: str = "jax",
    memory: int | float | str | None = None,
    microbatches: int = 1,
    offload: str | None = None,
    mesh: Any = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    state_shardings: Any = None,
) -> Any:
    """A function that does what `fn` does, as one XLA program for each signature of its arguments.

    At the first call with new shapes, dtypes or Python values `fn` is traced (see `graphc.trace`), optimized and
    compiled; later calls run the program. Tensors that `fn` reaches by itself are read anew at each call and receive
    gradients; in-place writes, `.grad` and random draws happen as in eager mode. Gradients flow through the results.
    Python values that `fn` reads (globals, attributes, options) are guarded: after a change it is traced again. Where
    Python branches on the values of tensors, each path is traced when it is first taken, at most 64 of them.
    Usable as a decorator, on functions, methods and modules.

    device        "cpu", "gpu" or None for JAX's default
    strict        only rewrites that keep every bit, and an XLA that keeps values; slower
    level, without  how much the optimizer does, and what it leaves out: see `graphc.optimize`
    dynamic       True: one trace for any size of the first dims of the arguments, as far as Python does not ask for
                  them (`if len(x) > 10` holds on one side, a loop over them for one size); None: from the second size
                  on, and sizes beyond eight run eagerly until a program would have paid; False: a trace for each size
    max_retraces  how often `fn` may be traced after the first time; RetraceError, with the reason, beyond that
    backend       "jax"; "numpy": the optimized graph as straight-line NumPy, which takes milliseconds to make and runs
                  small programs faster; or "auto": NumPy until XLA has paid for its compilation (the last bits change
                  then), and eager for further signatures until tracing has; XLA alone with `strict` or another device
    mesh          the devices to run on together, and
    in_shardings, out_shardings, state_shardings  where arguments, results and other tensors lie on them: see
                  docs/sharding.md
    memory        what each program may take: bytes, "2GiB", or a fraction of what it takes by itself. Values are
                  computed again rather than kept until it fits; MemoryBudgetError, with the least that was found,
                  before anything runs, if it cannot. `explain()` says what that costs
    microbatches  in how many parts, one after the other, a training step computes its batch, the tensors among the
                  arguments: a loop in the program, whose values are those of the whole batch up to rounding. Random
                  masks are the same. MicrobatchError where that cannot be, as for statistics of the batch
    offload       "optimizer": what an optimizer keeps for parameters lies in the memory of the host between calls, and
                  visits the device for its update. RuntimeError where the device cannot read that memory

    >>> import eager as torch, graphc
    >>> @graphc.compile
    ... def f(x):
    ...     return (x * x).sum()
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> f(x).backward()
    >>> x.grad
    tensor([2., 4.])
    """
    settings = settings_for(strict, level, without)
    shardings = Shardings.of(mesh, in_shardings, out_shardings, state_shardings)
    options = Options.of(device, dynamic, max_retraces, backend, memory, microbatches, offload, settings, shardings)
    return functools.partial(_compiled, options) if fn is None else _compiled(options, fn)


def _compiled(options: Options, fn: Any) -> Any:
    if not callable(fn):
        raise TypeError(f"graphc.compile expects a callable, got {type(fn).__name__}")
    if inspect.isgeneratorfunction(fn) or inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn):
        raise errors.CaptureError(errors.RUNS_IN_PARTS.format(name=getattr(fn, "__name__", type(fn).__name__)))
    compiled = Compiled(fn, options)
    return CompiledModule(fn, compiled) if isinstance(fn, Module) else compiled
