"""How long XLA takes on this machine: for a call, for its work, and to compile. Measured once, and kept.

A small program takes XLA as long as its call does; NumPy needs no model, as it can be timed at once. The figures lie
beside the compiled programs (see `graphc.lowering.cache`), for this processor and these versions.
"""

from __future__ import annotations

import contextlib
import functools
import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from graphc.errors import ProgramFileError
from graphc.files import writing
from graphc.files.contents import contents
from graphc.files.json_text import Limits, parsed
from graphc.files.schema import Number, Record, Text
from graphc.ir.builder import Builder
from graphc.ir.graph import Graph, Ref
from graphc.lowering import cache
from graphc.lowering.executable import Executable
from graphc.lowering.host import HostExecutable
from graphc.lowering.program_devices import ProgramDevices
from graphc.ops import OPS
from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT32
from graphc.rewrite.cost import operations

FILE = "machine.json"
ROUNDS = 15
LONGEST = 10.0  # seconds: no figure is as large
LIMITS = Limits(size=4096, depth=2, values=32)
MANY = 24  # nodes of the program that tells what each node takes to compile
WIDTH = 192  # of the matrices of the product that is timed


class Machine(NamedTuple):
    """Seconds: of a call of a program, for each array that it takes or returns, for each element of a plain operation
    and of a function such as exp, and for each operation of a product; to compile a program, and for each node of it.
    """

    call: float
    array: float
    element: float
    function: float
    product: float
    compiling: float
    node: float

    def least(self, graph: Graph) -> float:
        """What a call takes at least."""
        return self.call + self.array * (len(graph.inputs) + len(graph.outputs))

    def run(self, graph: Graph) -> float:
        """What a call takes: as if each operation's result were used where it is computed."""
        total = self.least(graph)
        for node in graph.operations():
            op = node.op
            rate = self.element
            if op.flops is not None:
                rate = self.product
            elif op.pointwise and op.rule.promote == "float":
                rate = self.function
            if not op.structured and not op.several:
                total += rate * operations(node, graph.nodes)
        return total

    def compile(self, graph: Graph) -> float:
        """What it takes to compile."""
        return self.compiling + self.node * len(graph)


_SCHEMA = Record({"machine": Text(), **{name: Number(low=0.0) for name in Machine._fields}})


_refuse = ProgramFileError.of(FILE)


def read(data: bytes) -> tuple[str, Machine]:
    """The machine that a file names, and its figures. Raises ProgramFileError."""
    known = parsed(data, LIMITS, _refuse)
    _SCHEMA.check(known, "", _refuse)
    return known["machine"], Machine(*(float(known[name]) for name in Machine._fields))


@functools.cache
def machine() -> Machine:
    """The figures of this machine: kept ones, or measured now, which takes less than a second."""
    path, key = _path(), f"{platform.processor() or platform.machine()}, jax {jax.__version__}, numpy {np.__version__}"
    if path is not None and (known := _kept(path, key)) is not None:
        return known
    found = measured()
    if path is not None:
        with contextlib.suppress(OSError):  # a read-only home, a full disk
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            writing.write(path, json.dumps({"machine": key, **found._asdict()}), durable=False)
    return found


def _path() -> Path | None:
    directory = cache.cache_directory()
    return None if directory is None else directory / FILE


def _kept(path: Path, key: str) -> Machine | None:
    """What the file says of the machine `key`; None if it says nothing that can be used."""
    try:
        named, found = read(contents(path, LIMITS.size, _refuse))
    except (OSError, ProgramFileError):
        return None
    return found if named == key and max(found) < LONGEST else None


def measured() -> Machine:
    """The figures, measured now."""
    small, row, square = Aval((4,), FLOAT32), Aval((1 << 16,), FLOAT32), Aval((WIDTH, WIDTH), FLOAT32)
    start = time.perf_counter()
    few = _Program("mul", [small] * 2)
    compiling = time.perf_counter() - start
    start = time.perf_counter()
    many = _Program("mul", [small] * MANY)
    node = (time.perf_counter() - start - compiling) / (2 * MANY - 4)  # with its inputs, as `len(graph)` counts
    node = max(node, compiling / MANY)  # those of real programs are harder than a chain of products
    plain, function, product = _Program("mul", [row] * 2), _Program("exp", [row]), _Program("matmul", [square] * 2)
    call = few.seconds()
    array = max(many.seconds() - call, 0.0) / (MANY - 2)
    call = max(call - 3 * array, 0.0)
    work = [max(p.seconds() - call, 0.0) for p in (plain, function, product)]
    return Machine(
        call, array, work[0] / row.size, work[1] / row.size, work[2] / (2 * WIDTH**3), compiling, node
    )  # fmt: skip


class _Program:
    """A program of one op, taken over all its inputs, with arrays to run it on."""

    def __init__(self, name: str, avals: Sequence[Aval]):
        builder, op = Builder(), OPS[name]
        inputs = [builder.input(f"x{k}", aval) for k, aval in enumerate(avals)]
        result = builder.apply(op, inputs[:2], {}) if len(inputs) > 1 else builder.apply(op, inputs, {})
        for x in inputs[2:]:
            result = builder.apply(op, [result, x], {})
        graph = builder.graph(name, Ref(result.id))
        program = Executable(graph, ProgramDevices(), (), {}, False, (), ())
        self._run: Any = program.compile_measured().program
        self._arrays = [jax.device_put(np.ones(aval.shape, aval.dtype)) for aval in avals]

    def seconds(self) -> float:
        return seconds_of(lambda: jax.block_until_ready(self._run(*self._arrays)))


def seconds_of(call: Callable[[], object], rounds: int = ROUNDS, least: float = 2e-4) -> float:
    """The median over rounds of at least so many seconds, of what a call takes."""
    call()
    start = time.perf_counter()
    call()
    repeats = max(1, int(least / max(time.perf_counter() - start, 1e-9)))
    found: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        found.append((time.perf_counter() - start) / repeats)
    return statistics.median(found)


def seconds_of_program(program: Executable | HostExecutable, given: Sequence[bool] = ()) -> float | None:
    """What a call takes, awaited, on arrays of ones; None if it raises on those.

    given  for each input whether it is NumPy's; those of a program of NumPy all are
    """
    arrays: list[Any] = [np.ones(a.shape, a.dtype) for a in program.graph.input_avals()]
    try:
        if isinstance(program, HostExecutable):
            return seconds_of(lambda: program.dispatch(*arrays), 7)
        for k in range(len(arrays)):
            if k >= len(given) or not given[k]:
                arrays[k] = program.own(arrays[k])
        taken = [(k, arrays[k]) for k in program.donated]
        if not taken:
            return seconds_of(lambda: jax.block_until_ready(program.call(*arrays)), 7)
        found: list[float] = []
        for _ in range(12):
            for k, array in taken:
                arrays[k] = program.own(np.ones(array.shape, array.dtype))
            start = time.perf_counter()
            jax.block_until_ready(program.call(*arrays))
            found.append(time.perf_counter() - start)
        return statistics.median(found[2:])
    except Exception:  # checks that fail, matrices that have no inverse
        return None
