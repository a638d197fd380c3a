"""Where a call on a mesh parts from one on one device: each step is held to NumPy as it happens.

Steps are what the mesh does with arrays: put them on devices, run an op on their parts, lay what is written as it lay
before, draw random numbers, fetch values; and the programs that `graphc.compile` makes for a mesh, node by node.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, final

import numpy as np

import compare
from compare.judging.isolate import judge_alone
from compare.judging.numeric import evaluate
from compare.judging.shares import near
from compare.judging.tolerance import Verdict
from compare.locating.culprit import Culprit, blame
from eager.core import placed
from eager.core.runtime import runtime
from eager.engine import immediate
from graphc.capture.location import line_of, user_frame
from graphc.ir import Node, Ref
from graphc.lowering import Executable, lower
from graphc.ops import Op
from graphc.ops.aval import aval_of, results_of
from graphc.ops.interpret import run_kernel
from graphc.scoped import attribute
from graphc.sharding.layout import Layout
from graphc.sharding.sharding import Sharding

PLACING, WRITE, DRAWS = "placing on the mesh", "write on the mesh", "random numbers on the mesh"
FETCH, OP, VIEW, PROGRAM = "gathering from the mesh", "op on the mesh", "view on the mesh", "program for the mesh"
_OWN = os.path.dirname(os.path.abspath(str(compare.__file__))) + os.sep


def first_on_mesh(call: Callable[[], object]) -> Culprit | None:
    """The first step of `call` on a mesh that does not do what it does on one device; None if all do."""
    watch = _Watch()
    with watch.watching():
        try:
            call()
        except Exception:  # the mode has it
            if watch.found is None:
                raise
    return watch.found


@final
class _Watch:
    """found: the first step that went wrong."""

    def __init__(self) -> None:
        self.found: Culprit | None = None
        self._busy = False  # within a look at a step

    @contextmanager
    def watching(self) -> Iterator[None]:
        """A context in which all steps are looked at."""
        looks: list[tuple[Any, str, Callable[..., Any]]] = [
            (runtime(), "run", self._run), (runtime(), "alike", self._alike), (runtime(), "fetch", self._fetch),
            (runtime(), "read", self._read), (placed, "_split", self._split),
            (immediate.Immediate, "random", self._random), (Executable, "_set_into", self._program),
            (Executable, "_dispatch", self._dispatched), (Executable, "dispatch_anywhere", self._dispatched),
        ]  # fmt: skip
        with ExitStack() as stack:
            for owner, name, look in looks:
                stack.enter_context(attribute(owner, name, self._looked(vars(owner)[name], look)))
            yield

    def _looked(self, sound: Callable[..., Any], look: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **kwargs: Any) -> Any:
            if self._busy or self.found is not None:
                return sound(*args, **kwargs)
            return look(sound, *args, **kwargs)

        return step

    def _looking(self) -> AbstractContextManager[None]:
        return attribute(self, "_busy", True)

    def _blame(self, part: str, evidence: str, op: str = "") -> None:
        frame = user_frame((_OWN,))
        where = "" if frame is None else line_of(frame.f_code, frame.f_lasti)
        self.found = Culprit(part, op, None, where, evidence=evidence)

    def _run(self, sound: Any, op: Op, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        given = [_values(a) for a in operands]
        result = sound(op, operands, params)
        if op.impure or op.structured or not any(_lies(r) for r in results_of(result)):
            return result
        with self._looking():
            expected = run_kernel(op, given, params)
            found = tuple(_values(r) for r in result) if op.several else _values(result)
            avals = tuple(aval_of(r) for r in results_of(found))
            node = Node(-1, op, tuple(range(len(given))), params, avals)
            judgement = judge_alone(found, expected, node, given)
            if judgement.verdict is Verdict.BUG:
                lie = ", ".join(_lies(a) or "whole" for a in operands)
                made = ", ".join(_lies(r) or "whole" for r in results_of(result))
                self._blame(OP, f"operands lie as {lie}, the result as {made}: {judgement.detail}", op.name)
            else:
                for array in results_of(result):
                    self._copies(OP, array, "of its result", op.name)
        return result

    def _alike(self, sound: Any, array: Any, model: Any) -> Any:
        result = sound(array, model)
        with self._looking():
            wrong = _wrong_parts(result, _values(array))
            if wrong:
                self._blame(WRITE, f"stale, or of another value than was written, is the part of {'; '.join(wrong)}")
            elif runtime().dims(result) != runtime().dims(model):
                self._blame(WRITE, f"it lay as {_lies(model)}, and lies as {_lies(result)}")
        return result

    def _split(self, sound: Any, array: Any, where: Any, dims: Any) -> Any:
        result = sound(array, where, dims)
        with self._looking():
            expected = _values(array)
            if result[0].shape != expected.shape:
                self._blame(PLACING, f"of shape {expected.shape} comes one of shape {result[0].shape}")
            elif wrong := _wrong_parts(result[0], expected):
                self._blame(PLACING, f"split as {Sharding(tuple(dims))}: wrong is the part of {'; '.join(wrong)}")
        return result

    def _fetch(self, sound: Any, array: Any) -> np.ndarray:
        result = sound(array)
        if _lies(array):
            with self._looking():
                if _wrong_parts(array, result):
                    self._blame(FETCH, f"of an array that lies as {_lies(array)}, other values come than it has")
        return result

    def _read(self, sound: Any, whole: Any, steps: Any) -> Any:
        result = sound(whole, steps)
        if _lies(whole):
            with self._looking():
                expected = _values(whole)
                for step in steps:
                    expected = run_kernel(step.op, [expected], step.params)
                if not np.array_equal(_values(result), expected, equal_nan=expected.dtype.kind in "fc"):
                    ops = ", ".join(step.op.name for step in steps)
                    self._blame(VIEW, f"of an array that lies as {_lies(whole)}, through {ops}: other values")
        return result

    def _random(self, sound: Any, interpreter: Any, draw: Any, *args: Any, **kwargs: Any) -> Any:
        drawn: list[np.ndarray] = []

        def recorded(*given: Any) -> Any:
            drawn.append(np.array(draw(*given)))
            return drawn[-1]

        result = sound(interpreter, recorded, *args, **kwargs)
        if drawn and placed.is_placed(result):
            with self._looking():
                if not np.array_equal(_values(result._d.array), drawn[0].astype(result._dtype())):
                    self._blame(
                        DRAWS, "devices have other numbers than one device draws: a seed for each part, perhaps"
                    )
        return result

    def _copies(self, part: str, array: Any, what: str, op: str = "") -> None:
        off = runtime().apart(array) if _lies(array) else []
        if off:
            self._blame(part, f"devices have different copies {what}: {'; '.join(map(_place, off))}", op)

    def _program(self, sound: Any, program: Executable, done: list[Any], arrays: tuple[Any, ...]) -> None:
        self._look_at(program, arrays)
        sound(program, done, arrays)

    def _dispatched(self, sound: Any, program: Executable, *arrays: Any) -> Any:
        self._look_at(program, arrays)
        return sound(program, *arrays)

    def _look_at(self, program: Executable, arrays: Sequence[Any]) -> None:
        """Hold a program for a mesh, before it runs, to what its nodes are on NumPy."""
        if (layout := program.layout) is None:
            return
        with self._looking():
            given = [_values(a) for a in arrays]
            for name, value, array in zip(program.graph.input_names, given, program.placed(arrays), strict=False):
                if self.found is None and _lies(array) and (wrong := _wrong_parts(array, value)):
                    self._blame(PLACING, f"input '{name}': wrong is the part of {'; '.join(wrong)}")
            if self.found is None:
                self.found = _first_node(program, layout, given)


def _first_node(program: Executable, layout: Layout, given: Sequence[np.ndarray]) -> Culprit | None:
    """The first node that is another value on the mesh than NumPy makes of what its operands are there."""
    graph = program.graph
    nodes = [n for n in graph.operations() if not n.op.several and not n.op.structured and not n.op.impure]
    every = graph.replace(graph.nodes, tuple(Ref(n.id) for n in nodes))
    made = lower(every, mesh=Layout(layout.mesh, layout.inputs, (None,) * len(nodes))).call(*given)
    values = evaluate(graph, given, checked=False)
    values |= dict(zip((n.id for n in nodes), map(np.asarray, made), strict=True))
    for node in nodes:
        operands = [values[i] for i in node.inputs]
        if any(not isinstance(a, np.ndarray) for a in operands):
            continue
        judgement = judge_alone(values[node.id], run_kernel(node.op, operands, node.params), node, operands)
        if judgement.verdict is Verdict.BUG:
            return blame(PROGRAM, node, judgement.detail, values)
    return None


def _values(array: Any) -> Any:
    """The values of an array, from the first device that has each part."""
    return np.array(array)


def _lies(array: Any) -> str:
    """How an array lies on a mesh; "" if it lies on none."""
    dims = runtime().dims(array) if hasattr(array, "sharding") else None
    return "" if dims is None else str(Sharding(dims))


def _wrong_parts(array: Any, expected: np.ndarray) -> list[str]:
    """The places on the mesh whose part of `array` is not that of `expected`."""
    if array.shape != expected.shape:
        return ["every device"]
    mesh: Any = getattr(array.sharding, "mesh", None)
    wrong: list[str] = []
    for shard in array.addressable_shards:
        if not near(np.asarray(shard.data), expected[shard.index]):
            at = [] if mesh is None else np.argwhere(mesh.devices == shard.device)[0]
            wrong.append(_place(dict(zip(() if mesh is None else mesh.axis_names, map(int, at), strict=True))))
    return wrong


def _place(at: dict[str, int]) -> str:
    return ", ".join(f"{axis}={k}" for axis, k in at.items()) or "the device"
