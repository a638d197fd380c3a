"""`graphc.compile`: a function that is traced at its first call with each signature, and runs as one XLA program."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any, final

from eager.core.interpreter import current_interpreter, on_arrays
from eager.core.tensor import Tensor
from eager.nn import Module
from graphc import errors, forking
from graphc.capture import Drawn, Program, capture
from graphc.capture.building import building_of, outside
from graphc.capture.dynamic import Pattern
from graphc.capture.state.environment import Environment
from graphc.capture.state.moving import Moving
from graphc.capture.state.varying import take, varying_of, with_varying
from graphc.capture.trace import forget
from graphc.capture.tree import tensors_of
from graphc.compiling.disabling import switch
from graphc.compiling.entries import Entry
from graphc.compiling.families import Families
from graphc.compiling.hits import MISS, Hit, hit
from graphc.compiling.module import CompiledModule
from graphc.compiling.paths import Paths
from graphc.compiling.signature import Signatures, difference
from graphc.execution.runner import CheckFailed, OtherPath, Runner, abandon

LARGEST = 64  # programs kept for one function; of the signature used longest ago, the oldest goes first
AGAIN = 2  # times that a call is traced anew because XLA has rounded otherwise than NumPy does in the trace


@final
class Compiled:
    """What `graphc.compile` returns. Call it like the function.

    `graph` is the graph of the latest call's program, `explain()` says what was compiled and why.
    """

    def __init__(
        self, fn: Callable[..., Any], device: str | None, strict: bool, dynamic: bool | None, max_retraces: int | None
    ):
        self._fn = fn
        self._options = device, strict, dynamic, max_retraces
        self.__name__: str = getattr(fn, "__name__", type(fn).__name__)
        self._device = device
        self._strict = strict
        self._max_retraces = max_retraces
        self._signatures = Signatures()
        self._families = Families(dynamic)
        self._paths = Paths(self.__name__)
        self._entries: dict[Any, tuple[Entry, ...]] = {}  # the latest used first
        self._moving = Moving()
        self._lock = forking.renewed(threading.RLock())
        self._writing = forking.renewed(threading.RLock())  # held while a program runs that changes something
        self._latest: Entry | None = None
        self._hit: Hit | None = None  # the short way to the latest, once it has run a second time
        self._log: list[str] = []  # why each program was made
        functools.update_wrapper(self, fn, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        short = self._hit
        if short is not None and not kwargs and (result := short(self, args)) is not MISS:
            return result
        if switch.off or not on_arrays():
            traced = not current_interpreter().immediate
            if forking.process.lost and not traced:
                forking.warn()
            if switch.off or traced or any(map(building_of, tensors_of((args, kwargs)))):
                return self._fn(*args, **kwargs)  # inside another trace: part of that graph
            with outside():
                return self(*args, **kwargs)
        signature, tensors = self._signatures.of(args, kwargs)
        tried = self._entries.get(signature, ())
        for entry in tried:
            if entry.holds(tensors):
                result = self._run(entry, signature, tensors, args, kwargs)
                self._take_short_way(entry, args, kwargs)
                return result
        derived = self._derived(signature, tensors)
        if derived is not None:
            return self._run(derived, signature, tensors, args, kwargs)
        return self._trace_and_run(signature, tensors, args, kwargs, tried)

    def _run(self, entry: Entry, signature: Any, tensors: list[Tensor], args: Any, kwargs: Any) -> Any:
        if entry is not self._latest:
            self._used(entry, signature)
        entry.calls += 1
        states = entry.runner.states()
        try:
            if not entry.writes:
                return entry.runner.run(tensors, None, (args, kwargs))
            taken: list[bool] = []
            try:
                taken.extend(map(self._writing.acquire, (False,)))  # known at once to have been taken
                waited = not taken[0]
                with self._writing if waited else contextlib.nullcontext():
                    if not waited or entry.holds(tensors):
                        return entry.runner.run(tensors, None, (args, kwargs))
            finally:
                if taken and taken[0]:
                    self._writing.release()
            return self(*args, **kwargs)  # another thread has changed what the program depends on
        except (OtherPath, CheckFailed) as error:
            stopped = error
        return self._otherwise(stopped, entry, states, tensors, args, kwargs)

    def _otherwise(
        self, stopped: OtherPath | CheckFailed, entry: Entry, states: Any, tensors: list[Tensor], args: Any, kwargs: Any
    ) -> Any:
        """The call by other means, after that of `entry` has `stopped`; `states`: marks of generators, before."""
        if isinstance(stopped, CheckFailed):
            return self._eagerly(states, args, kwargs)
        for generator, mark in states:
            generator.rewind(mark)
        signature, values = entry.signature, stopped.values
        siblings = self._entries.get(signature, ())
        for sibling in siblings:
            if sibling.agrees(values) and sibling.holds(tensors):
                return self._run(sibling, signature, tensors, args, kwargs)
        derived = self._derived(signature, tensors, values)
        if derived is not None:
            return self._run(derived, signature, tensors, args, kwargs)
        decision = entry.program.decisions[len(values) - 1]
        if self._paths.uncounted(decision, [e for e in siblings if e.counts and e.holds(tensors)]):
            return self._eagerly(states, args, kwargs)
        return self._trace_and_run(signature, tensors, args, kwargs, siblings, values)

    def _derived(self, signature: Any, tensors: list[Tensor], values: tuple[bytes, ...] = ()) -> Entry | None:
        """The program for the sizes of this call, from an earlier trace with symbolic sizes."""
        for family in self._families.of(signature):
            first = family.first
            sizes = family.pattern.sizes_of(tensors) if first.agrees(values) else None
            if sizes is None or not first.holds(tensors):
                continue
            with self._lock:
                if any(e.family is family for e in self._entries.get(signature, ())):
                    continue  # has been tried
                start = time.perf_counter()
                try:
                    program = family.pattern.at(sizes)
                except errors.GraphError as error:
                    self._families.refuse(signature, error)
                    continue
                runner = Runner(program, tensors, self._device, self._strict)
                entry = Entry(signature, program, first.environment, runner)
                entry.seconds = {"passes": time.perf_counter() - start}
                entry.reason, entry.family = family.reason(sizes), family
                self._insert(entry, signature)
                return entry
        return None

    def _take_short_way(self, entry: Entry, args: Any, kwargs: Any) -> None:
        """Let the next call try `entry`, which has just run, before anything else."""
        if entry is self._latest:
            if entry.hit is ...:
                entry.hit = None if kwargs else hit(entry, args)
            self._hit = entry.hit

    def _used(self, entry: Entry, signature: Any) -> None:
        """Let `entry` be the first that is tried next time."""
        self._latest, self._hit = entry, None
        with self._lock:
            others = tuple(e for e in self._entries.get(signature, ()) if e is not entry)
            self._entries = self._with(signature, (entry, *others))

    def _with(self, signature: Any, entries: tuple[Entry, ...]) -> dict[Any, tuple[Entry, ...]]:
        """The programs, with these for `signature`, the latest used. A new dict: nobody sees it half made."""
        found = {known: some for known, some in self._entries.items() if known != signature}
        return {**found, signature: entries} if entries else found

    def _trace_and_run(
        self,
        signature: Any,
        tensors: list[Tensor],
        args: Any,
        kwargs: Any,
        tried: tuple[Entry, ...],
        foretold: tuple[bytes, ...] = (),
        again: int = AGAIN,
    ) -> Any:
        """Trace the call, and run the program; or one that another thread has made since `tried` were looked at."""
        drawn = Drawn()
        try:
            return self._traced(signature, tensors, args, kwargs, tried, foretold, again, drawn)
        except Exception:
            raise
        except BaseException:  # an interrupt: unless the program has run, all is as before the call
            try:
                drawn.interrupted()
            except BaseException:  # another, or the same one, before anything was put back
                drawn.interrupted()
                raise
            raise

    def _traced(
        self,
        signature: Any,
        tensors: list[Tensor],
        args: Any,
        kwargs: Any,
        tried: tuple[Entry, ...],
        foretold: tuple[bytes, ...],
        again: int,
        drawn: Drawn,
    ) -> Any:
        with self._lock:
            now = [e for e in self._entries.get(signature, ()) if not any(e is t for t in tried)]
            made = next((e for e in now if e.agrees(foretold) and e.holds(tensors)), None)
            entry = made or self._made(signature, tensors, args, kwargs, foretold, drawn)
        if made is not None:
            return self._run(made, signature, tensors, args, kwargs)
        runner = entry.runner
        states = [*drawn.marks, *runner.states([generator for generator, _ in drawn.marks])]
        try:
            with self._writing if entry.writes else contextlib.nullcontext():
                return runner.run(tensors, drawn, (args, kwargs))
        except CheckFailed:
            again = 0
        except OtherPath as other:  # XLA has rounded a value, on which Python has decided, in its own way
            foretold = other.values
            self._discard(entry)
        if not again:
            return self._eagerly(states, args, kwargs)
        for generator, mark in states:
            generator.rewind(mark)
        tried = self._entries.get(signature, ())
        return self._trace_and_run(signature, tensors, args, kwargs, tried, foretold, again - 1)

    def _discard(self, entry: Entry) -> None:
        """Forget a program that holds for no call."""
        with self._lock:
            self._hit = None
            left = tuple(e for e in self._entries.get(entry.signature, ()) if e is not entry)
            self._entries = self._with(entry.signature, left)
            self._log.remove(entry.reason)

    def _eagerly(self, states: Any, args: Any, kwargs: Any) -> Any:
        """The call as eager runs it, after a run-time check has failed: its exception, and what it changes before."""
        for generator, mark in states:
            generator.rewind(mark)
        return self._fn(*args, **kwargs)

    def _made(
        self,
        signature: Any,
        tensors: list[Tensor],
        args: Any,
        kwargs: Any,
        foretold: tuple[bytes, ...],
        drawn: Drawn,
    ) -> Entry:
        """A new program for this call. `drawn` gets what the trace has drawn."""
        reason, known = self._reason(signature, tensors), self._entries.get(signature, ())
        if reason and self._max_retraces is not None and len(self._log) > self._max_retraces:
            raise errors.RetraceError(
                errors.TOO_MANY_RETRACES.format(name=self.__name__, most=self._max_retraces, reason=reason)
            )
        if foretold:
            others = [e for e in known if e.program.decisions and e.holds(tensors)]
            self._paths.check(signature, others, foretold)
        start = time.perf_counter()
        for entry in {id(e): e for entries in self._entries.values() for e in entries}.values():
            self._moving.learn(entry.environment.broken_places())
        try:
            environment, program, pattern = self._captured(signature, tensors, args, kwargs, foretold, drawn)
        except errors.UnrolledError as error:
            self._paths.unrolled(signature, error)
            raise
        traced = time.perf_counter()
        entry = Entry(signature, program, environment, Runner(program, tensors, self._device, self._strict))
        entry.seconds = {"trace": traced - start, "passes": time.perf_counter() - traced}
        entry.reason, entry.calls = reason or "first call", 1
        self._log.append(entry.reason)
        if pattern is not None:
            self._families.add(signature, pattern, entry)
        self._insert(entry, signature)
        return entry

    def _captured(
        self,
        signature: Any,
        tensors: list[Tensor],
        args: Any,
        kwargs: Any,
        foretold: tuple[bytes, ...],
        drawn: Drawn,
    ) -> tuple[Environment, Program, Pattern | None]:
        """The program for this call; and the pattern that it is of, if sizes are symbolic.

        What fails with symbolic sizes or traced numbers is traced without: C code may not take them. So is what asks
        for the `type` of numbers.
        """
        raised: Exception | None = None
        batches = self._families.batches(signature, tensors)
        first = Environment(self._fn, args, kwargs, self._moving)
        numbered = bool(first.moving.numbers or varying_of(tensors))
        if numbered and first.asks_types:
            self._moving.fix(first.moving)
            take(tensors)
            first, numbered = Environment(self._fn, args, kwargs, self._moving), False
        for sizes, numbers in [(s, n) for s in (True, False) for n in (True, False)]:
            if (sizes and batches is None) or (numbers and not numbered):
                continue
            moving = self._moving if numbers else self._moving.without_numbers()
            environment = first if raised is None else Environment(self._fn, args, kwargs, moving)
            last = not sizes and not numbers
            failed = functools.partial(abandon, (args, kwargs), environment)
            traced = with_varying(tensors, args, kwargs, not numbers)
            try:
                program = capture(
                    self._fn, *traced, environment=environment, foretold=foretold, batches=batches if sizes else None,
                    drawn=drawn, failed=failed if last else functools.partial(forget, environment),
                )  # fmt: skip
                pattern = None
                if sizes and batches is not None:
                    pattern = Pattern(program, *batches, tensors)
                    at = pattern.at(batches[0].hints)
                    program = at._replace(drawn=program.drawn)
            except Exception as error:
                if last or isinstance(error, errors.UnrolledError):
                    raise
                raised, batches = error, self._families.batches(signature, tensors)
                continue
            if raised is not None and numbered and not numbers:
                self._moving.fix(first.moving)
                take(tensors)
            if raised is not None and batches is not None and not sizes:
                self._families.refuse(signature, raised)
            return environment, program, pattern
        raise AssertionError("the last trace returns or raises")

    def _insert(self, entry: Entry, signature: Any) -> None:
        entries = self._with(signature, (entry, *self._entries.get(signature, ())))
        while sum(map(len, entries.values())) > LARGEST:
            oldest = next(iter(entries))
            *left, dropped = entries[oldest]
            if dropped.program.decisions:
                self._paths.lose(oldest, len(dropped.program.graph))
            entries[oldest] = tuple(left)
            if not left:
                del entries[oldest]
        self._entries, self._latest, self._hit = entries, entry, None

    def _reason(self, signature: Any, tensors: list[Tensor]) -> str:
        """Why a program has to be made; "" for the first."""
        if not self._entries:
            return ""
        known = self._entries.get(signature)
        if not known:
            return difference(signature, self._entries)
        return "; ".join(known[0].conditions.broken(tensors)) or "values of tensors lead along another path"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    @property
    def graph(self) -> Any:
        """The optimized graph of the latest call. Raises RuntimeError before the first."""
        return self._last().runner.forward.graph

    @property
    def source(self) -> str:
        """The JAX program of the latest call."""
        return self._last().runner.forward.source

    def _last(self) -> Entry:
        if self._latest is None:
            raise RuntimeError(f"{self.__name__} has not been called yet: it is traced at its first call")
        return self._latest

    def explain(self) -> str:
        """Every program: its signature, why it was made, its size, its path, and the time that each stage took."""
        from graphc.compiling.explanation import explanation

        entries = [e for entries in self._entries.values() for e in entries]
        return explanation(self.__name__, entries, self._log, [*self._families.described(), *self._paths.described()])

    def __getattr__(self, name: str) -> Any:
        if name == "_fn" or (name.startswith("__") and name not in ("__self__", "__func__")):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(self._fn, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        return Compiled(copy.deepcopy(self._fn, memo), *self._options)

    def __reduce__(self) -> Any:
        """By name, as functions are pickled, if it is what its module has there; else by what it compiles."""
        found: Any = sys.modules.get(getattr(self, "__module__", ""))
        for name in (qualified := getattr(self, "__qualname__", "")).split("."):
            found = getattr(found, name, None)
        return qualified if found is self else (Compiled, (self._fn, *self._options))

    def __repr__(self) -> str:
        return f"<graphc.compile({getattr(self._fn, '__qualname__', self._fn)!s})>"


def compile(
    fn: Callable[..., Any] | None = None,
    *,
    device: str | None = None,
    strict: bool = False,
    dynamic: bool | None = None,
    max_retraces: int | None = None,
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
    dynamic       True: one trace for any size of the first dims of the arguments, as far as Python does not ask for
                  them (`if len(x) > 10` holds on one side, a loop over them for one size); None: from the second size
                  on; False: a trace for each size
    max_retraces  how often `fn` may be traced after the first time; RetraceError, with the reason, beyond that

    >>> import eager as torch, graphc
    >>> @graphc.compile
    ... def f(x):
    ...     return (x * x).sum()
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> f(x).backward()
    >>> x.grad
    tensor([2., 4.])
    """
    if fn is None:
        return functools.partial(compile, device=device, strict=strict, dynamic=dynamic, max_retraces=max_retraces)
    if not callable(fn):
        raise TypeError(f"graphc.compile expects a callable, got {type(fn).__name__}")
    if inspect.isgeneratorfunction(fn) or inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn):
        raise errors.CaptureError(errors.RUNS_IN_PARTS.format(name=getattr(fn, "__name__", type(fn).__name__)))
    compiled = Compiled(fn, device, strict, dynamic, max_retraces)
    return CompiledModule(fn, compiled) if isinstance(fn, Module) else compiled
