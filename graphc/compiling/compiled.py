"""A function that is traced at its first call with each signature, and runs as one XLA program."""

from __future__ import annotations

import contextlib
import copy
import functools
import sys
import threading
import time
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, final, overload

from eager.core.interpreter import current_interpreter, on_arrays
from eager.core.meta import is_meta
from eager.core.tensor import Tensor
from eager.profiling.instruments import instruments
from graphc import errors, forking, logs
from graphc.capture.building import building_of, outside
from graphc.capture.elsewhere import OfElsewhere, with_tensors
from graphc.capture.placement import plain_alike
from graphc.capture.program import Program
from graphc.capture.sources import Drawn
from graphc.capture.state.lifting import LiftedPlaces
from graphc.capture.tree import tensors_of
from graphc.compiling.choice import Choice
from graphc.compiling.disable import switch
from graphc.compiling.dynamic_shapes import DynamicShapes, Family
from graphc.compiling.explanation import CompiledExplanation, explanation
from graphc.compiling.fast_call import MISS, FastCall, fast_call
from graphc.compiling.microbatches import in_microbatches
from graphc.compiling.options import AUTO, Options
from graphc.compiling.paths import Path, Paths
from graphc.compiling.profiling import instrument
from graphc.compiling.sharded import Shardings
from graphc.compiling.signature import Call, Signatures, difference
from graphc.compiling.specializations import Specialization, Specializations
from graphc.compiling.tracing import traced
from graphc.compiling.waiting import Waiting
from graphc.execution.runner import CheckFailed, OtherPath, Runner
from graphc.execution.target import Target
from graphc.ir.graph import Graph
from graphc.passes.settings import SIDE_BY_SIDE
from graphc.sharding.mesh import mesh_of
from graphc.sharding.propagation import annotated

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
TRACED = "%s: %d nodes, traced in %.0f ms, optimized in %.0f ms"
AGAIN = 2  # times that a call is traced anew because XLA has rounded otherwise than NumPy does in the trace


@final
class Compiled(Generic[P, R_co]):
    """What `graphc.compile` returns. Call it like the function.

    `graph` is the graph of the latest call's program, `explain()` says what was compiled and why.
    """

    def __init__(self, fn: Callable[P, R_co], options: Options):
        self._fn = fn
        self._options = options
        self.__name__: str = getattr(fn, "__name__", type(fn).__name__)
        self._signatures = Signatures()
        self._shapes = DynamicShapes(options.dynamic)
        self._paths = Paths(self.__name__)
        self._specializations = Specializations()
        self._lifted = LiftedPlaces()
        self._lock = forking.renewed(threading.RLock())
        self._writing = forking.renewed(threading.RLock())  # held while a program runs that changes something
        self._latest: Specialization | None = None
        self._fast_call: FastCall | None = None  # the short way to the latest, once it has run a second time
        self._waiting = Waiting.of(options)
        self._log: list[str] = []  # why each program was made
        functools.update_wrapper(self, fn, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        short = self._fast_call
        if short is not None and not kwargs and (result := short(self, args)) is not MISS:
            return result
        if switch.off or not on_arrays():
            interpreter = current_interpreter()
            traced = not interpreter.immediate or interpreter.watching
            if forking.process.lost and not traced:
                forking.warn()
            if switch.off or traced or any(map(building_of, tensors_of((args, kwargs)))):
                args, kwargs = with_tensors((args, kwargs))
                return self._fn(*args, **kwargs)  # inside another trace: part of that graph; or watched
            with outside():
                return self(*args, **kwargs)
        try:
            call = self._signatures.of(args, kwargs)
        except OfElsewhere:
            args, kwargs = with_tensors((args, kwargs))
            return self(*args, **kwargs)
        if any(map(is_meta, call.tensors)):
            return self._fn(*args, **kwargs)  # there is nothing to compute
        if self._waiting is not None and self._waiting.waits(call.signature, self._specializations):
            return self._waiting.run(self._fn, call)
        found = self._specializations.latest(call.signature)
        short = None if found is None or found is self._latest or kwargs else found.fast_call
        if found is not None and short not in (None, ...):
            self._put_first(found)  # of sizes that take turns, each has a short way
            if (result := short(self, args)) is not MISS:
                self._fast_call = short if found is self._latest else None
                return result
        found = self._find(call)
        if found is None:
            return self._trace_and_run(call)
        result = self._run(found, call)
        if found is self._latest and found.calls > 1 and (found.choice is None or not found.choice.wants_time):
            if found.fast_call is ...:
                found.fast_call = fast_call(found, call)
            self._fast_call = found.fast_call
        return result

    def prepare(self, *args: P.args, **kwargs: P.kwargs) -> Runner:
        """What runs a call with these arguments, traced now if need be, and not run. Random draws are put back."""
        with outside():
            call = self._signatures.of(args, kwargs)
            found = self._find(call)
            if found is None:
                drawn = Drawn()
                with self._lock:
                    found = self._specialized(call, (), drawn)
                drawn.put_back()
                found.calls = 0
        return found.runner

    def _find(self, call: Call, path: Path = ()) -> Specialization | None:
        """The program for `call`, of which so much is known, if there is one; or if it takes no trace to make it."""
        found = self._specializations.find(call, path)
        if found is not None:
            return found
        for family in self._shapes.of(call.signature):
            sizes = family.symbolic.sizes_of(call.tensors) if family.first.agrees(path) else None
            if sizes is not None and family.first.holds(call.tensors):
                with self._lock:
                    if (found := self._derived(family, sizes, call)) is not None:
                        return found
        return None

    def _derived(self, family: Family, sizes: Mapping[str, int], call: Call) -> Specialization | None:
        """The program of a family for the sizes of a call. None if that has been tried, or fails."""
        if any(s.family is family for s in self._specializations.of(call.signature)):
            return None
        start = time.perf_counter()
        try:
            program = family.symbolic.at(sizes)
        except errors.GraphError as error:
            self._shapes.refuse(call.signature, error)
            return None
        backend = self._backend(call)
        runner = self._runner(program, call.tensors, backend, call)
        seconds, environment = {"passes": time.perf_counter() - start}, family.first.environment
        made = Specialization(call.signature, program, environment, runner, family.reason(sizes), seconds, family)
        self._let_choose(made, backend)
        self._put_first(made)
        return made

    def _backend(self, call: Call) -> str:
        """Of one more program for a call, where it is not the one that is asked for."""
        waiting = self._waiting
        return AUTO if waiting is not None and waiting.compiles_later(call, self._specializations) else ""

    def _runner(self, program: Program, tensors: list[Tensor], backend: str = "", call: Call | None = None) -> Runner:
        options = self._options
        wanted = backend or options.backend
        if program.device is not None:
            wanted = "jax"
        elif wanted == AUTO:
            wanted = "numpy"
        if options.microbatches > 1:
            program = in_microbatches(program, options.microbatches)
        placed, shardings = None, options.shardings
        if shardings is None and program.device is not None and program.device.mesh is not None:
            options.check_mesh()
            shardings = Shardings(mesh_of(program.device.mesh), None, None, None, explicit=False)
        if shardings is not None and call is not None:
            program, placed = shardings.placed(self._fn, program, call)
        offload, settings = options.offload is not None, options.settings
        if placed is not None:
            settings = settings._replace(without=settings.without | SIDE_BY_SIDE)
        target = Target(settings, options.device, wanted, options.memory, placed, offload)
        return Runner(program, tensors, target)

    def _let_choose(self, made: Specialization, backend: str = "") -> None:
        """Let a new program change its backend, if it may."""
        if (backend or self._options.backend) == AUTO and made.program.device is None:
            made.choice = Choice(made.runner, made.program, functools.partial(self._runner, backend="jax"))

    def _ask(self, found: Specialization, call: Call) -> None:
        """Choose the backend of a program anew, if it is time to."""
        choice = found.choice
        if choice is None or found.calls < choice.again or choice.wants_time:
            return
        with self._lock:
            runner = choice.asked(found.runner, found.calls, call.tensors)
            if runner is not found.runner:
                found.runner = runner
            found.fast_call = ...

    def _run(self, found: Specialization, call: Call, path: Path = ()) -> Any:
        """The result of `call` by a program whose guards hold; by other means, if that stops.

        path  what another program has computed of the values on which Python decides
        """
        if found is not self._latest:
            self._put_first(found)
        self._ask(found, call)
        found.calls += 1
        if found.choice is None or not found.choice.wants_time:
            return self._carried_out(found, call, path)
        start = time.perf_counter()
        result = self._carried_out(found, call, path)
        found.choice.timed(time.perf_counter() - start)
        return result

    def _carried_out(self, found: Specialization, call: Call, path: Path) -> Any:
        try:
            if not found.writes:
                return found.runner.run(call.tensors, None, call.given)
            taken: list[bool] = []
            try:
                taken.extend(map(self._writing.acquire, (False,)))  # known at once to have been taken
                waited = not taken[0]
                with self._writing if waited else contextlib.nullcontext():
                    if not waited or found.holds(call.tensors):
                        return found.runner.run(call.tensors, None, call.given)
            finally:
                if taken and taken[0]:
                    self._writing.release()
            return self(*call.args, **call.kwargs)  # another thread has changed what the program depends on
        except (OtherPath, CheckFailed) as error:
            stopped = error
        return self._otherwise(stopped, found, call, path)

    def _otherwise(self, stopped: OtherPath | CheckFailed, by: Specialization, call: Call, known: Path = ()) -> Any:
        """The call by other means, after a program has `stopped`, which has left all as it was.

        Two programs may round a value to either side of what Python decides on: that is settled by running eagerly.
        """
        if isinstance(stopped, OtherPath) and stopped.values[: len(known)] == known:
            path = stopped.values
            found = self._find(call, path)
            if found is not None:
                return self._run(found, call, path)
            siblings = self._specializations.of(call.signature)
            if self._paths.waits(call, path, by, siblings):
                return self._paths.run(self._fn, call, path)
            return self._trace_and_run(call, path)
        return self._fn(*call.args, **call.kwargs)  # eager's exception, and what it changes before

    def _trace_and_run(self, call: Call, path: Path = (), again: int = AGAIN) -> Any:
        """Trace the call, and run the program; or one that another thread has made meanwhile."""
        drawn = Drawn()
        try:
            with self._lock:
                found = self._specializations.find(call, path)
                made = None if found is not None else self._specialized(call, path, drawn)
            if made is None:
                assert found is not None
                return self._run(found, call, path)
            try:
                with self._writing if made.writes else contextlib.nullcontext():
                    return made.runner.run(call.tensors, drawn, call.given)
            except CheckFailed:
                again = 0
            except OtherPath as other:  # XLA has rounded a value, on which Python has decided, in its own way
                path = other.values
                self._discard(made)
            drawn.put_back()
            if again:
                return self._trace_and_run(call, path, again - 1)
            return self._fn(*call.args, **call.kwargs)
        except Exception:
            raise
        except BaseException:  # an interrupt: unless the program has run, all is as before the call
            try:
                drawn.interrupted()
            except BaseException:  # another, or the same one, before anything was put back
                drawn.interrupted()
                raise
            raise

    def _specialized(self, call: Call, path: Path, drawn: Drawn) -> Specialization:
        """A new program for this call. `drawn` gets what the trace has drawn."""
        reason, known = self._reason(call), self._specializations
        most = self._options.max_retraces
        if reason and most is not None and len(self._log) > most:
            raise errors.RetraceError(errors.TOO_MANY_RETRACES.format(name=self.__name__, most=most, reason=reason))
        if path:
            others = [s for s in known.of(call.signature) if s.program.checks.decisions and s.holds(call.tensors)]
            self._paths.check(call.signature, others, path)
        start = time.perf_counter()
        self._lifted.again = bool(len(known))
        for one in known:
            self._lifted.learn(one.environment.broken_places())
        try:
            with plain_alike(self._options.shardings is not None):
                environment, program, symbolic = traced(self._fn, call, self._lifted, self._shapes, path, drawn)
        except errors.UnrolledError as error:
            self._paths.unrolled(call.signature, error)
            raise
        middle = time.perf_counter()
        try:
            runner = self._runner(program, call.tensors, backend := self._backend(call), call)
        except (errors.MemoryBudgetError, errors.MicrobatchError):  # as before the call
            drawn.put_back()
            raise
        seconds = {"trace": middle - start, "passes": time.perf_counter() - middle}
        made = Specialization(call.signature, program, environment, runner, reason or "first call", seconds)
        made.calls = 1
        milliseconds = (1000 * seconds["trace"], 1000 * seconds["passes"])
        logs.trace.info(TRACED, self.__name__, len(program.graph), *milliseconds)
        if reason:
            logs.recompiles.info("%s: program %d, because: %s", self.__name__, len(self._log) + 1, reason)
        self._let_choose(made, backend)
        self._log.append(made.reason)
        if symbolic is not None:
            self._shapes.add(call.signature, symbolic, made)
        self._put_first(made)
        return made

    def _put_first(self, specialization: Specialization) -> None:
        """Let a program be the first that is tried next time."""
        self._fast_call = None
        with self._lock:
            for dropped in self._specializations.put_first(specialization):
                if dropped.program.checks.decisions:
                    self._paths.lose(dropped.signature, len(dropped.program.graph))
        self._latest, self._fast_call = specialization, None

    def _discard(self, specialization: Specialization) -> None:
        """Forget a program that holds for no call."""
        with self._lock:
            self._fast_call = None
            self._specializations.discard(specialization)
            self._log.remove(specialization.reason)

    def _reason(self, call: Call) -> str:
        """Why a program has to be made; "" for the first."""
        if not len(self._specializations):
            return ""
        known = self._specializations.of(call.signature)
        if not known:
            return difference(call.signature, self._specializations.signatures)
        return "; ".join(known[0].broken(call.tensors)) or "values of tensors lead along another path"

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self: Compiled[Concatenate[Any, Q], R], instance: object, owner: Any = None) -> Callable[Q, R]: ...

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    @property
    def graph(self) -> Graph:
        """The optimized graph of the latest call. Raises RuntimeError before the first."""
        program = self._last().runner.forward
        return program.graph if self._options.shardings is None else annotated(program.graph, program.layout)

    @property
    def source(self) -> str:
        """The program of the latest call, of JAX or NumPy."""
        return self._last().runner.forward.source

    def _last(self) -> Specialization:
        if self._latest is None:
            raise RuntimeError(f"{self.__name__} has not been called yet: it is traced at its first call")
        return self._latest

    def explain(self) -> CompiledExplanation:
        """Every program: its signature, why it was made, its path, its size, where it runs, and what each stage took.

        A report with fields: `print(f.explain())`, `f.explain().programs[0].seconds`, `f.explain().to_json()`.
        """
        made, notes = [*self._specializations], [*self._shapes.described(), *self._paths.described()]
        notes += [] if self._waiting is None else self._waiting.described()
        return explanation(self.__name__, made, self._log, notes)

    if not TYPE_CHECKING:  # so that a checker finds unknown attributes

        def __getattr__(self, name: str) -> Any:
            if name == "_fn" or (name.startswith("__") and name not in ("__self__", "__func__")):
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
            return getattr(self._fn, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled[P, R_co]:
        return Compiled(copy.deepcopy(self._fn, memo), self._options)

    def __reduce__(self) -> Any:
        """By name, as functions are pickled, if it is what its module has there; else by what it compiles."""
        found: Any = sys.modules.get(getattr(self, "__module__", ""))
        for name in (qualified := getattr(self, "__qualname__", "")).split("."):
            found = getattr(found, name, None)
        return qualified if found is self else (Compiled, (self._fn, self._options))

    def __repr__(self) -> str:
        return f"<graphc.compile({getattr(self._fn, '__qualname__', self._fn)!s})>"


instruments.append(instrument(Compiled))
