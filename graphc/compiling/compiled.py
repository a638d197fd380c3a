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

from eager.core.state import current_interpreter
from eager.core.tensor import Tensor
from eager.nn import Module
from graphc import errors, forking
from graphc.capture import Drawn, Program, capture
from graphc.capture.building import building_of, outside
from graphc.capture.state.environment import Environment
from graphc.capture.state.lifted_numbers import lifted_of, take_by_value, with_lifted
from graphc.capture.state.lifting import LiftedPlaces
from graphc.capture.symbolic_program import SymbolicProgram
from graphc.capture.trace import forget
from graphc.capture.tree import tensors_of
from graphc.compiling.disable import switch
from graphc.compiling.dynamic_shapes import DynamicShapes
from graphc.compiling.fast_call import MISS, FastCall, fast_call
from graphc.compiling.module import CompiledModule
from graphc.compiling.paths import Paths
from graphc.compiling.signature import Signatures, difference
from graphc.compiling.specializations import Specialization
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
        self._shapes = DynamicShapes(dynamic)
        self._paths = Paths(self.__name__)
        self._specializations: dict[Any, tuple[Specialization, ...]] = {}  # the latest used first
        self._lifted = LiftedPlaces()
        self._lock = forking.renewed(threading.RLock())
        self._writing = forking.renewed(threading.RLock())  # held while a program runs that changes something
        self._latest: Specialization | None = None
        self._fast_call: FastCall | None = None  # the short way to the latest, once it has run a second time
        self._log: list[str] = []  # why each program was made
        functools.update_wrapper(self, fn, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        short = self._fast_call
        if short is not None and not kwargs and (result := short(self, args)) is not MISS:
            return result
        interpreter = current_interpreter()
        if interpreter is not None or switch.off:
            traced = interpreter is not None and not interpreter.immediate
            if forking.process.lost and not traced:
                forking.warn()
            if switch.off or traced or any(map(building_of, tensors_of((args, kwargs)))):
                return self._fn(*args, **kwargs)  # inside another trace: part of that graph
            with outside():
                return self(*args, **kwargs)
        signature, tensors = self._signatures.of(args, kwargs)
        tried = self._specializations.get(signature, ())
        for specialization in tried:
            if specialization.holds(tensors):
                result = self._run(specialization, signature, tensors, args, kwargs)
                self._take_fast_call(specialization, args, kwargs)
                return result
        derived = self._derived(signature, tensors)
        if derived is not None:
            return self._run(derived, signature, tensors, args, kwargs)
        return self._trace_and_run(signature, tensors, args, kwargs, tried)

    def _run(
        self, specialization: Specialization, signature: Any, tensors: list[Tensor], args: Any, kwargs: Any
    ) -> Any:
        if specialization is not self._latest:
            self._used(specialization, signature)
        specialization.calls += 1
        states = specialization.runner.states()
        try:
            if not specialization.writes:
                return specialization.runner.run(tensors, None, (args, kwargs))
            taken: list[bool] = []
            try:
                taken.extend(map(self._writing.acquire, (False,)))  # known at once to have been taken
                waited = not taken[0]
                with self._writing if waited else contextlib.nullcontext():
                    if not waited or specialization.holds(tensors):
                        return specialization.runner.run(tensors, None, (args, kwargs))
            finally:
                if taken and taken[0]:
                    self._writing.release()
            return self(*args, **kwargs)  # another thread has changed what the program depends on
        except (OtherPath, CheckFailed) as error:
            stopped = error
        return self._otherwise(stopped, specialization, states, tensors, args, kwargs)

    def _otherwise(
        self,
        stopped: OtherPath | CheckFailed,
        specialization: Specialization,
        states: Any,
        tensors: list[Tensor],
        args: Any,
        kwargs: Any,
    ) -> Any:
        """The call by other means, after `specialization` has `stopped`; `states`: marks of generators, before."""
        if isinstance(stopped, CheckFailed):
            return self._eagerly(states, args, kwargs)
        for generator, mark in states:
            generator.rewind(mark)
        signature, values = specialization.signature, stopped.values
        siblings = self._specializations.get(signature, ())
        for sibling in siblings:
            if sibling.agrees(values) and sibling.holds(tensors):
                return self._run(sibling, signature, tensors, args, kwargs)
        derived = self._derived(signature, tensors, values)
        if derived is not None:
            return self._run(derived, signature, tensors, args, kwargs)
        decision = specialization.program.decisions[len(values) - 1]
        if self._paths.uncounted(decision, [e for e in siblings if e.counts and e.holds(tensors)]):
            return self._eagerly(states, args, kwargs)
        return self._trace_and_run(signature, tensors, args, kwargs, siblings, values)

    def _derived(self, signature: Any, tensors: list[Tensor], values: tuple[bytes, ...] = ()) -> Specialization | None:
        """The program for the sizes of this call, from an earlier trace with symbolic sizes."""
        for family in self._shapes.of(signature):
            first = family.first
            sizes = family.symbolic.sizes_of(tensors) if first.agrees(values) else None
            if sizes is None or not first.holds(tensors):
                continue
            with self._lock:
                if any(e.family is family for e in self._specializations.get(signature, ())):
                    continue  # has been tried
                start = time.perf_counter()
                try:
                    program = family.symbolic.at(sizes)
                except errors.GraphError as error:
                    self._shapes.refuse(signature, error)
                    continue
                runner = Runner(program, tensors, self._device, self._strict)
                specialization = Specialization(signature, program, first.environment, runner)
                specialization.seconds = {"passes": time.perf_counter() - start}
                specialization.reason, specialization.family = family.reason(sizes), family
                self._insert(specialization, signature)
                return specialization
        return None

    def _take_fast_call(self, specialization: Specialization, args: Any, kwargs: Any) -> None:
        """Let the next call try `specialization`, which has just run, before anything else."""
        if specialization is self._latest:
            if specialization.fast_call is ...:
                specialization.fast_call = None if kwargs else fast_call(specialization, args)
            self._fast_call = specialization.fast_call

    def _used(self, specialization: Specialization, signature: Any) -> None:
        """Let `specialization` be the first that is tried next time."""
        self._latest, self._fast_call = specialization, None
        with self._lock:
            others = tuple(e for e in self._specializations.get(signature, ()) if e is not specialization)
            self._specializations = self._with(signature, (specialization, *others))

    def _with(
        self, signature: Any, specializations: tuple[Specialization, ...]
    ) -> dict[Any, tuple[Specialization, ...]]:
        """The programs, with these for `signature`, the latest used. A new dict: nobody sees it half made."""
        found = {known: some for known, some in self._specializations.items() if known != signature}
        return {**found, signature: specializations} if specializations else found

    def _trace_and_run(
        self,
        signature: Any,
        tensors: list[Tensor],
        args: Any,
        kwargs: Any,
        tried: tuple[Specialization, ...],
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
        tried: tuple[Specialization, ...],
        foretold: tuple[bytes, ...],
        again: int,
        drawn: Drawn,
    ) -> Any:
        with self._lock:
            now = [e for e in self._specializations.get(signature, ()) if not any(e is t for t in tried)]
            made = next((e for e in now if e.agrees(foretold) and e.holds(tensors)), None)
            specialization = made or self._made(signature, tensors, args, kwargs, foretold, drawn)
        if made is not None:
            return self._run(made, signature, tensors, args, kwargs)
        runner = specialization.runner
        states = [*drawn.marks, *runner.states([generator for generator, _ in drawn.marks])]
        try:
            with self._writing if specialization.writes else contextlib.nullcontext():
                return runner.run(tensors, drawn, (args, kwargs))
        except CheckFailed:
            again = 0
        except OtherPath as other:  # XLA has rounded a value, on which Python has decided, in its own way
            foretold = other.values
            self._discard(specialization)
        if not again:
            return self._eagerly(states, args, kwargs)
        for generator, mark in states:
            generator.rewind(mark)
        tried = self._specializations.get(signature, ())
        return self._trace_and_run(signature, tensors, args, kwargs, tried, foretold, again - 1)

    def _discard(self, specialization: Specialization) -> None:
        """Forget a program that holds for no call."""
        with self._lock:
            self._fast_call = None
            left = tuple(e for e in self._specializations.get(specialization.signature, ()) if e is not specialization)
            self._specializations = self._with(specialization.signature, left)
            self._log.remove(specialization.reason)

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
    ) -> Specialization:
        """A new program for this call. `drawn` gets what the trace has drawn."""
        reason, known = self._reason(signature, tensors), self._specializations.get(signature, ())
        if reason and self._max_retraces is not None and len(self._log) > self._max_retraces:
            raise errors.RetraceError(
                errors.TOO_MANY_RETRACES.format(name=self.__name__, most=self._max_retraces, reason=reason)
            )
        if foretold:
            others = [e for e in known if e.program.decisions and e.holds(tensors)]
            self._paths.check(signature, others, foretold)
        start = time.perf_counter()
        for specialization in {
            id(e): e for specializations in self._specializations.values() for e in specializations
        }.values():
            self._lifted.learn(specialization.environment.broken_places())
        try:
            environment, program, symbolic = self._captured(signature, tensors, args, kwargs, foretold, drawn)
        except errors.UnrolledError as error:
            self._paths.unrolled(signature, error)
            raise
        traced = time.perf_counter()
        specialization = Specialization(
            signature, program, environment, Runner(program, tensors, self._device, self._strict)
        )
        specialization.seconds = {"trace": traced - start, "passes": time.perf_counter() - traced}
        specialization.reason, specialization.calls = reason or "first call", 1
        self._log.append(specialization.reason)
        if symbolic is not None:
            self._shapes.add(signature, symbolic, specialization)
        self._insert(specialization, signature)
        return specialization

    def _captured(
        self,
        signature: Any,
        tensors: list[Tensor],
        args: Any,
        kwargs: Any,
        foretold: tuple[bytes, ...],
        drawn: Drawn,
    ) -> tuple[Environment, Program, SymbolicProgram | None]:
        """The program for this call; and the pattern that it is of, if sizes are symbolic.

        What fails with symbolic sizes or traced numbers is traced without: C code may not take them. So is what asks
        for the `type` of numbers.
        """
        raised: Exception | None = None
        batches = self._shapes.batches(signature, tensors)
        first = Environment(self._fn, args, kwargs, self._lifted)
        numbered = bool(first.lifting.numbers or lifted_of(tensors))
        if numbered and first.asks_types:
            self._lifted.fix(first.lifting)
            take_by_value(tensors)
            first, numbered = Environment(self._fn, args, kwargs, self._lifted), False
        for sizes, numbers in [(s, n) for s in (True, False) for n in (True, False)]:
            if (sizes and batches is None) or (numbers and not numbered):
                continue
            lifted = self._lifted if numbers else self._lifted.without_numbers()
            environment = first if raised is None else Environment(self._fn, args, kwargs, lifted)
            last = not sizes and not numbers
            failed = functools.partial(abandon, (args, kwargs), environment)
            traced = with_lifted(tensors, args, kwargs, not numbers)
            try:
                program = capture(
                    self._fn, *traced, environment=environment, foretold=foretold, batches=batches if sizes else None,
                    drawn=drawn, failed=failed if last else functools.partial(forget, environment),
                )  # fmt: skip
                symbolic = None
                if sizes and batches is not None:
                    symbolic = SymbolicProgram(program, *batches, tensors)
                    at = symbolic.at(batches[0].hints)
                    program = at._replace(drawn=program.drawn)
            except Exception as error:
                if last or isinstance(error, errors.UnrolledError):
                    raise
                raised, batches = error, self._shapes.batches(signature, tensors)
                continue
            if raised is not None and numbered and not numbers:
                self._lifted.fix(first.lifting)
                take_by_value(tensors)
            if raised is not None and batches is not None and not sizes:
                self._shapes.refuse(signature, raised)
            return environment, program, symbolic
        raise AssertionError("the last trace returns or raises")

    def _insert(self, specialization: Specialization, signature: Any) -> None:
        specializations = self._with(signature, (specialization, *self._specializations.get(signature, ())))
        while sum(map(len, specializations.values())) > LARGEST:
            oldest = next(iter(specializations))
            *left, dropped = specializations[oldest]
            if dropped.program.decisions:
                self._paths.lose(oldest, len(dropped.program.graph))
            specializations[oldest] = tuple(left)
            if not left:
                del specializations[oldest]
        self._specializations, self._latest, self._fast_call = specializations, specialization, None

    def _reason(self, signature: Any, tensors: list[Tensor]) -> str:
        """Why a program has to be made; "" for the first."""
        if not self._specializations:
            return ""
        known = self._specializations.get(signature)
        if not known:
            return difference(signature, self._specializations)
        return "; ".join(known[0].guards.broken(tensors)) or "values of tensors lead along another path"

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

    def _last(self) -> Specialization:
        if self._latest is None:
            raise RuntimeError(f"{self.__name__} has not been called yet: it is traced at its first call")
        return self._latest

    def explain(self) -> str:
        """Every program: its signature, why it was made, its size, its path, and the time that each stage took."""
        from graphc.compiling.explanation import explanation

        specializations = [e for specializations in self._specializations.values() for e in specializations]
        return explanation(
            self.__name__, specializations, self._log, [*self._shapes.described(), *self._paths.described()]
        )

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
