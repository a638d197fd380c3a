"""Executable: a graph compiled by XLA, ready to be called."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from itertools import starmap
from operator import itemgetter
from typing import Any, final

import jax
import numpy as np

from graphc import forking
from graphc.errors import GraphcError
from graphc.ir.calling import arrays_of, raw
from graphc.ir.definitions import without_composites_anywhere
from graphc.ir.graph import Graph, Ref, fill
from graphc.lowering import cache, stages
from graphc.lowering.blocks import by_blocks
from graphc.lowering.columns import by_columns
from graphc.lowering.keys import key_of
from graphc.lowering.layouts import channels_last
from graphc.lowering.program_devices import Offload, ProgramDevices
from graphc.lowering.source import Source
from graphc.lowering.stages import (
    PLANNED,
    Compilation,
    Figures,
    compile_measured,
    figures_of,
    forget_programs,
    half_precision,
    is_wide,
    matmul_precision,
    setting,
)
from graphc.lowering.timing import Announced, learn
from graphc.ops.threads import number_of_threads
from graphc.passes.settings import BLOCKS, CHANNELS_LAST, COLUMNS
from graphc.sharding.layout import Layout

# Off under strict=True: XLA's algebraic simplifier changes values ((x + 1e8) - 1e8 becomes x), and optimized code
# contracts a * b + c into one rounding.
STRICT: Mapping[str, Any] = {"xla_disable_hlo_passes": "algsimp", "xla_backend_optimization_level": 0}
ALONE: Mapping[str, Any] = {"xla_cpu_multi_thread_eigen": False}  # what torch.set_num_threads(1) asks for
# what a compiled program raises, before it has begun, for arrays on other devices than those that it was compiled for
ELSEWHERE = (TypeError, ValueError)
_REFUSALS = (jax.errors.JaxRuntimeError, TypeError, ValueError, NotImplementedError, GraphcError)  # JAX's, or ours
_FAST: type = type(jax.jit(len))  # a function in C++, which runs no Python once it has been called


def options_of(strict: bool) -> dict[str, Any] | None:
    """XLA's options for a program; None for its own."""
    options = {**(STRICT if strict else stages.PLAIN or {}), **(ALONE if number_of_threads() == 1 else {})}
    return options or None


def _same(args: Sequence[Any], given: Sequence[Any]) -> bool:
    """Whether the inputs of a program are its arguments, one by one; not where two are one, which hides their order."""
    ids = [id(a) for a in args]
    return ids == [id(a) for a in given] and len({*ids}) == len(ids)


@final
class Executable:
    """A compiled graph.

    source   the JAX program, as text
    graph    what it was lowered from
    donated  positions of the arguments whose buffers the program takes over
    fails    whether a run-time check may fail
    dispatch f(*arrays): the outputs, perhaps before they are computed; after them, if it `fails`, what `verify` needs.
             Raises one of `ELSEWHERE` where `dispatch_anywhere` has to be called in its place
    seconds  what it took to compile or to load the program, by stage
    memory   bytes of results and temporaries; None before that, or where the backend does not tell

    Call it as the function that the graph was traced from, with arrays (ndarray, jax.Array or Tensor) for tensors, or
    with one array for each input; it returns the graph's result with jax.Arrays in place of nodes. Compilation happens
    at the first call, or in `compile()`.
    """

    on_host = False  # its arrays are XLA's

    def __init__(
        self,
        graph: Graph,
        devices: ProgramDevices,
        donate: Sequence[int],
        restore: Mapping[int, int],
        strict: bool,
        without: Collection[str],
        settled: Collection[int],
    ):
        forking.refuse(f"the program {graph.name}")
        self.graph = graph
        self.donated = tuple(donate)
        # XLA would copy an output that is returned twice
        unique = graph.outputs if restore else tuple(dict.fromkeys(graph.outputs))
        distinct = len(unique) == len(graph.outputs)
        places = [unique.index(id) for id in graph.outputs]
        once = graph if distinct else graph.replace(graph.nodes, tuple(map(Ref, unique)))
        once = without_composites_anywhere(once)
        self._kept = [graph.outputs.index(id) for id in once.outputs]  # which output each of the program is
        self._devices = devices
        if not strict and CHANNELS_LAST not in without:
            once = channels_last(once)
        if devices.first.platform == "cpu" and not strict and devices.whole:
            once = by_blocks(once) if BLOCKS not in without else once
            once = by_columns(once) if COLUMNS not in without else once
        once = devices.arranged(once)
        self._program = Source(once, restore=restore, settled=settled, apart=True, without=without)
        self.source = self._program.text
        self._checked = self._program.checked
        self.fails = bool(self._checked)
        self._spread = None if distinct else itemgetter(*places, *([len(unique)] if self.fails else []))
        self._options: Any = options_of(strict)
        self._precision = matmul_precision()
        self._wide = is_wide(graph)
        self._context = devices.context(self._wide)
        self._places: Any = tuple(np.int32(place) for place in self._program.places)
        # whether a compiled program is called with the arrays as they are: it knows its device, but not 64-bit types
        self._plain = not self._wide and devices.calls_plainly and distinct and not self._places
        self.seconds: dict[str, float] = {}
        self.memory: int | None = None
        self._run: Callable[..., tuple[Any, ...]] | None = None  # the compiled program
        self._plainly: tuple[type, ...] | None = None  # types of JAX's arrays, with which it has been called
        self._compiled: Any = None  # the same, as JAX's stage
        self._restored = dict(restore)
        self.dispatch: Callable[..., Any] = self._first_dispatch
        self.into: Callable[[list[Any], tuple[Any, ...]], None] = self._first_into
        if not devices.compiled:
            self._run = devices.program(self._jitted)
            self.dispatch, self.into = self._dispatch, self._set_into

    @property
    def on_default_device(self) -> bool:
        """Whether no device was named for the program."""
        return self._devices.named is None

    @cached_property
    def _jitted(self) -> Any:
        """The program as jax.jit has it, which compiles it anew for arrays elsewhere."""
        plain, options = self._program.function(), self._options

        def function(*arrays: Any) -> Any:
            with jax.default_matmul_precision(self._precision):
                return plain(*arrays)

        found = plain if self._precision is None else function
        # every argument is used or not as the program says: an unused one must not shift the donated positions
        return jax.jit(
            self._devices.function(found),
            donate_argnums=self.donated,
            compiler_options=options,
            keep_unused=True,
            **self._devices.options(len(self._places), self._kept, self.fails),
        )

    def _first_dispatch(self, *arrays: Any) -> tuple[Any, ...]:
        if self._run is None:
            self.compile()
        outputs = self._dispatch(*arrays)
        # the program calls this, which is shorter by a frame of Python's
        self._run = getattr(self._run, "_call", None) or self._run
        assert self._run is not None
        self.dispatch = self._run if self._plain else self._dispatch
        return outputs

    def _dispatch(self, *arrays: Any) -> tuple[Any, ...]:
        assert self._run is not None
        with self._context():
            outputs = self._run(*self._devices.put(arrays), *self._places)
        return outputs if self._spread is None else self._spread(outputs)

    def _first_into(self, done: list[Any], arrays: tuple[Any, ...]) -> None:
        """Append what `dispatch` returns to `done`, with nothing in between that an interrupt could prevent.

        The program of JAX is Python code the first time, and always if it calls Python: then it is given copies.
        """
        outputs = self.dispatch(*self._copied(arrays))
        fast: Any = self._run
        if not isinstance(fast, _FAST):
            self.into = self._slow_into
        elif self._plain:
            self.into = lambda done, arrays: done.extend(starmap(fast, (arrays,)))
        else:
            self.into = self._set_into
        done.append(outputs)

    def _slow_into(self, done: list[Any], arrays: tuple[Any, ...]) -> None:
        done.append(self.dispatch(*self._copied(arrays)))

    def _set_into(self, done: list[Any], arrays: tuple[Any, ...]) -> None:
        run: Any = self._run
        with self._context():
            given = (*self._devices.put(arrays), *self._places)
            if self._spread is None:
                done.extend(starmap(run, (given,)))
            else:  # nothing is donated
                done.append(self._spread(run(*given)))

    def into_anywhere(self, done: list[Any], arrays: tuple[Any, ...]) -> None:
        """What `into` does, on whatever devices the arrays lie."""
        done.append(self.dispatch_anywhere(*self._copied(arrays)))

    def _copied(self, arrays: tuple[Any, ...]) -> list[Any]:
        """`arrays`, with copies of those that the program takes over."""
        return [self.own(a) if k in self.donated else a for k, a in enumerate(arrays)]

    def dispatch_anywhere(self, *arrays: Any) -> tuple[Any, ...]:
        """What `dispatch` does, on whatever devices the arrays lie."""
        with self._context():
            run = self._devices.program(self._jitted)
            outputs = run(*self.placed(arrays), *map(np.asarray, self._places))
        return outputs if self._spread is None else self._spread(outputs)

    def placed(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """`arrays` where the program takes them."""
        return self._devices.put(arrays)

    def verify(self, outputs: Sequence[Any]) -> None:
        """Raise what a run-time check of the program has found, if it `fails`. Waits for the program to end."""
        # waits by itself, but in a way that takes two more switches between threads; `item` of JAX copies
        if (number := np.asarray(outputs[-1].block_until_ready()).item()) >= 0:
            raise self._error(number, outputs[:-1])

    def call(self, *arrays: Any) -> Sequence[Any]:
        """The outputs of the program. Raises what a check has found: with `outputs`, in which state is as it was."""
        forking.refuse(f"the program {self.graph.name}")
        try:
            outputs = self.dispatch(*arrays)
        except ELSEWHERE:
            outputs = self.dispatch_anywhere(*arrays)
        if not self.fails:
            return outputs
        self.verify(outputs)
        return outputs[:-1]

    def _error(self, number: int, outputs: Sequence[Any]) -> Exception:
        node = self._checked[number]
        assert node.check is not None
        error = node.check.failure(node.params, node.where)
        error.outputs = outputs  # type: ignore[attr-defined]  # donated state, handed back unchanged
        return error

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and tuple(map(type, args)) == self._plainly and not forking.process.lost:
            try:
                outputs = self.dispatch(*args)  # asks for shapes and dtypes by itself
            except ELSEWHERE:
                pass
            else:
                if self.fails:
                    self.verify(outputs)
                return self._result(outputs)
        given = [raw(a) for a in arrays_of(self.graph, args, kwargs)]
        for position, a in enumerate(given):
            if not isinstance(a, jax.Array):
                given[position] = np.asarray(a)
        self._fit(given)
        outputs = self.call(*given)
        if any(isinstance(a, np.ndarray) for a in given):
            jax.block_until_ready(outputs)  # a later write to the caller's memory must not reach the program
        elif self._devices.compiled and not kwargs and _same(args, given):
            self._plainly = tuple(map(type, args))
        return self._result(outputs)

    def _result(self, outputs: Sequence[Any]) -> Any:
        """The graph's result with arrays in place of nodes."""
        result = self.graph.result
        if type(result) is Ref:
            return outputs[0]
        if type(result) is tuple and all(type(part) is Ref for part in result):
            return tuple(outputs[: len(result)])
        return fill(result, dict(zip(self.graph.outputs, outputs, strict=False)))

    def _fit(self, arrays: list[Any]) -> None:
        graph = self.graph
        if len(arrays) != len(graph.inputs):
            names = ", ".join(graph.input_names)
            raise TypeError(f"{graph.name}() takes {len(graph.inputs)} arrays ({names}) but {len(arrays)} were given")
        for name, aval, a in zip(graph.input_names, graph.input_avals(), arrays, strict=True):
            if a.shape != aval.shape or a.dtype != aval.dtype:
                raise ValueError(
                    f"{graph.name}(): argument '{name}' must be {aval}, got {np.dtype(a.dtype)}{list(a.shape)}"
                )

    def own(self, array: Any) -> Any:
        """A copy of `array` on the device, which the program may take over."""
        with setting(self._wide):
            return self._devices.own(array)

    def compile(self) -> dict[str, float]:
        """Compile now, or load what an earlier process has compiled.

        Returns the seconds it took: {"jax trace": ..., "lower": ..., "xla": ...}, or {"load": ...}.
        """
        forking.refuse(f"the program {self.graph.name}")
        if not self._devices.compiled:
            self._compiled, self.seconds = self._compilation()
            return self.seconds
        with Announced(self.graph), self._context():
            start, device = time.perf_counter(), self._devices.first
            key = self._key(device) if cache.in_use() and self._devices.cached else None
            program = None if key is None else cache.load(key, device)
            if program is not None:
                self.seconds = {"load": time.perf_counter() - start}
            else:
                try:
                    program, self.seconds = self._compilation()
                except BaseException as error:
                    if not isinstance(error, _REFUSALS):
                        self.__dict__.pop("_jitted", None)
                        forget_programs()  # JAX takes what has been interrupted for what is still running
                    raise
                learn(len(self.graph), self.seconds["xla"])
                if key is not None and self.seconds["xla"] >= cache.WORTHWHILE:
                    cache.store(key, program, device)
            self._compiled, self.memory = program, Compilation(program, self.seconds).memory
            self._run = self._devices.program(program)
            self._places = tuple(jax.device_put(place, device) for place in self._places)
        return self.seconds

    @property
    def lowered(self) -> Graph:
        """The graph as its program computes it: with images and large products arranged for XLA."""
        return self._program.graph

    @property
    def aliases(self) -> dict[int, int]:
        """Input number -> the number of the output that is written over it."""
        return {position: output for output, position in self._restored.items()}

    def plan(self) -> Figures | None:
        """What XLA's program takes, as XLA has laid it out. None where the backend does not tell.

        On a CPU a program that is not compiled yet need not be: XLA makes the same plan for machine code that is not
        optimized, in two fifths of the time.
        """
        if self._compiled is None:
            if self._devices.first.platform == "cpu":
                return figures_of(self._compilation(PLANNED).program)
            self.compile()
        return figures_of(self._compiled)

    def compile_measured(self) -> Compilation:
        """Compile by itself, apart from the calls. Returns the seconds it took, and the memory that it will take."""
        with self._context():
            return self._compilation()

    def _compilation(self, options: Mapping[str, Any] | None = None) -> Compilation:
        structs = self._devices.structs((*self.graph.input_avals(), *self._places))
        with half_precision(self.graph), self._context():
            return compile_measured(self._jitted, *structs, options=options)

    @cached_property
    def hlo(self) -> str:
        """What XLA has made of the program, as text: compiled once more for this."""
        return self._compilation().program.as_text()

    @property
    def offloaded(self) -> Offload:
        """What of its inputs and outputs lies on the host."""
        return self._devices.offload

    @property
    def layout(self) -> Layout | None:
        """Where its inputs and outputs lie on a mesh; None if it runs on one device."""
        return self._devices.layout

    def _key(self, device: Any) -> str | None:
        program, avals = self._program, self.graph.input_avals()
        return key_of(program.plain, program.scope, avals, self.donated, (self._options, self._precision), device)

    def __repr__(self) -> str:
        return f"<Executable of {self.graph!r}>"


block = jax.block_until_ready
