"""What must be so at a call, besides its signature, for a program to be right: as generated code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from sys import getrefcount
from typing import Any, NamedTuple, final

import numpy as np

from eager.core.placed import Placed, is_placed
from eager.core.stand_ins import Deferred
from eager.core.tensor import Tensor
from graphc.capture.generated import Names, indented
from graphc.capture.program import Program
from graphc.capture.sources import Argument, Captured, Lifted
from graphc.capture.state.environment import Environment
from graphc.capture.state.words import Condition, Judged, Word, version_of
from graphc.capture.storage.sharing import Sharing, written_by
from graphc.compiling.in_place import ReadInPlace
from graphc.execution.packs import Packs

# what the code names
KNOWN: Mapping[str, Any] = {"Deferred": Deferred, "Placed": Placed, "ndarray": np.ndarray, "refs": getrefcount}


@final
class _Captured(NamedTuple):
    """What one captured tensor has to be like. layout: of its memory, if that matters: how to ask, and the answer.

    where  its device; None on the CPU
    """

    tensor: Tensor
    shape: tuple[int, ...]
    dtype: np.dtype
    constant: bool
    layout: tuple[Callable[[], Any], Any] | None
    where: Any = None

    def array(self, d: Any, unsealed: Any) -> Any:
        """The array behind data `d`, whoever has made it; None if it is not as it was."""
        on_host = d.__class__ is np.ndarray
        if (d.device if d.__class__ is Placed else None) is not self.where:
            return None
        if d.shape != self.shape or (d.dtype if on_host else d.numpy_dtype) != self.dtype:
            return None
        if self.layout is not None:
            strides, expected = self.layout
            # what is not NumPy's has no strides: None
            if (on_host or expected is not None) and strides() != expected:
                return None
        if on_host:
            return d
        return d.array if d.__class__ is Deferred or unsealed is None else unsealed(d)

    def on_host(self, d: Any, unsealed: Any) -> Any:
        """The ndarray behind data `d`; None if it is not as it was."""
        found = self.array(d, unsealed)
        return self.tensor._array() if found is not None and d.__class__ is Deferred else found

    def lines(
        self, names: Names, miss: str, watched: bool, array: str | None, fetch: Callable[[Any], Any]
    ) -> list[str]:
        """Statements that do `miss` if it is not so, and fetch its array. Programs make data with the same objects.

        fetch(d): the array behind other data; None if that is not as it was.
        """
        tensor, shape, dtype = names.of(self.tensor), names.of(self.shape), names.of(self.dtype)
        if self.where is not None:
            return [
                f" d = {tensor}._d",
                f" if (d.__class__ is not Placed or d.device is not {names.of(self.where)} or d.shape != {shape}"
                f" or d.numpy_dtype is not {dtype} or {tensor}._n is {'not ' if self.constant else ''}None): {miss}",
                *([f" {array} = d.array"] if array else []),
            ]
        quick = f"d.__class__ is Deferred and d.numpy_dtype is {dtype} and (d.shape is {shape} or d.shape == {shape})"
        if self.layout is not None and self.layout[1] is not None:
            quick = "False"  # it lay in NumPy's memory
        # the tensor, `d` and the argument of getrefcount
        seen = ["  if refs(d) > 3: alone = False"] if watched else []
        name = array or "x"
        return [
            f" d = {tensor}._d",
            f" if {tensor}._n is {'not ' if self.constant else ''}None: {miss}",
            f" if {quick}:",
            *seen,
            f"  {array} = d.array" if array else "  pass",
            " else:",
            f"  {name} = {names.of(fetch)}(d)",
            f"  if {name} is None: {miss}",
            *(["  alone = False"] if watched else []),
            *(["  if d.__class__ is not Deferred: on_host = True"] if array else []),
        ]

    def lines_on_host(
        self, names: Names, miss: str, watched: bool, array: str, fetch: Callable[[Any], Any]
    ) -> list[str]:
        """The same for a program of NumPy, whose data are ndarrays."""
        tensor, shape, dtype = names.of(self.tensor), names.of(self.shape), names.of(self.dtype)
        quick = f"{array}.__class__ is ndarray and {array}.dtype is {dtype} and {array}.shape == {shape}"
        if self.layout is not None:
            strides, expected = map(names.of, self.layout)
            quick += f" and {strides}() == {expected}"
        # the tensor, the variable and the argument of getrefcount; a view would be another array's memory
        seen = [f" if refs({array}) > 3 or {array}.base is not None: alone = False"] if watched else []
        return [
            f" {array} = {tensor}._d",
            f" if {tensor}._n is {'not ' if self.constant else ''}None: {miss}",
            f" if not ({quick}):",
            f"  {array} = {names.of(fetch)}({array})",
            f"  if {array} is None: {miss}",
            *(["  alone = False"] if watched else []),
            *seen,
        ]


@final
class _ReadInPlace:
    """Fetches the array behind a captured tensor that programs only read; NumPy's memory where it lies."""

    def __init__(self, captured: _Captured, unsealed: Any):
        self._captured, self._unsealed = captured, unsealed
        self._arrays = ReadInPlace()

    def fetch(self, d: Any) -> Any:
        """The array behind data `d`; None if that is not as it was."""
        known, array = self._arrays.known
        if known() is d:
            return array
        array = self._captured.array(d, self._unsealed)
        return self._arrays.fetch(self._captured.tensor, d, held=3) if array is d else array


@final
class Guards:
    """The guards of one program."""

    def __init__(self, program: Program, environment: Environment):
        self._program = program
        self._environment = environment
        layouts = {id(g.layout): (g.getter, g.value) for g in program.guarded.state if g.layout is not None}
        self._captured = [
            _Captured(
                t, tuple(t._d.shape), t._dtype(), t._n is None, layouts.get(id(t)), t.device if is_placed(t) else None
            )
            for t in (s.tensor for s in program.sources if isinstance(s, Captured))
        ]
        self._numbers = [s for s in program.sources if isinstance(s, Lifted) and s.kind is not None]
        self._lifted_kinds = environment.lifting.kinds
        self._sharing = Sharing(program)

    def function(self, packs: Packs | None = None) -> Callable[[list[Tensor]], bool]:
        """f(tensors): whether all is so, for a call with these tensors (of its signature)."""
        names = Names()
        lines = self.lines(names, "return False", "tensors", "tensors[{}]", packs=packs)
        return names.bind("holds", ["def holds(tensors):", *lines, " return True"], KNOWN)

    def lines(
        self, names: Names, miss: str, tensors: str, argument: str, arrays: Mapping[int, str] | None = None,
        unsealed: Any = None, in_place: bool = False, on_host: bool = False, packs: Packs | None = None,
    ) -> list[str]:  # fmt: skip
        """Statements that do `miss` if something is not so.

        tensors   the expression of the list of the arguments' tensors
        argument  that of the one of a number, to be formatted with it
        arrays    by id of a captured tensor, the variable for its array; `on_host` becomes true if one is NumPy's
        unsealed  f(data): the array of a tensor that was made in inference mode
        in_place  whether the program may read NumPy's memory where it is: it keeps no arrays beyond the call
        on_host   whether the program is NumPy's
        packs     in which captured tensors lie: `arrays` has the hidden ones in their place

        The variable `alone` tells afterwards whether a program has made the data of all tensors that are written, and
        no one else holds them: False, if that is not known.
        """
        captured = {id(c.tensor) for c in self._captured}
        watched = frozenset(map(id, self._sharing.watched))
        written = {id(s.tensor) for s in written_by(self._program) if isinstance(s, Captured)}
        state = self._state(captured)
        if packs is not None and arrays is not None:
            state.append(packs.condition)
        lines = [" # guards", *self._environment.lines(names, miss, state)]
        lines += [" # captured tensors", f" alone = {watched <= captured}"]
        packed = frozenset[int]() if packs is None else frozenset(map(id, packs.members))
        if packs is not None and arrays is not None:
            lines += [f" {arrays[id(t)]} = {names.of(t)}._d.array" for t in packs.hidden]
        elif packs is not None:
            lines += [f" if not ({packs.settled(names.of)}):", f"  if {names.of(packs.misfit)}(): {miss}"]
            for c in self._captured:
                if id(c.tensor) in packed:
                    fetch = functools.partial(c.array, unsealed=None)
                    lines += indented(c.lines(names, miss, id(c.tensor) in watched, None, fetch))
        for c in self._captured:
            if id(c.tensor) in packed:
                continue
            array = None if arrays is None else arrays[id(c.tensor)]
            if on_host and array is not None:
                host = functools.partial(c.on_host, unsealed=unsealed)
                lines += c.lines_on_host(names, miss, id(c.tensor) in watched, array, host)
                continue
            fetch = functools.partial(c.array, unsealed=unsealed)
            if in_place and array is not None and id(c.tensor) not in written:
                fetch = _ReadInPlace(c, unsealed).fetch
            lines += c.lines(names, miss, id(c.tensor) in watched, array, fetch)
        kinds = [f"type({names.of(s.get)}()) is not {names.of(s.kind)}" for s in self._numbers]
        lines += [f" if {' or '.join(kinds)}: {miss}"] if kinds else []
        if self._lifted_kinds:
            lines.append(f" if not {names.of(self._lifted_alike)}({tensors}): {miss}")
        for position, getter, value, _, quick in self._program.guarded.arguments:
            lines.append(f" t = {argument.format(position)}")
            lines.append(f" if {quick} and {names.of(getter)}(t) != {names.of(value)}: {miss}")
        if watched and self._sharing.arguments:
            given = (f"id({tensors}[{k}]) in {names.of(watched)}" for k in self._sharing.arguments)
            lines.append(f" if {' or '.join(given)}: alone = False")
        if self._sharing.needed:
            asked = "not alone and " if self._sharing.only_alone else ""
            lines.append(f" if {asked}not {names.of(self._sharing.holds)}({tensors}): {miss}")
        return lines

    def _state(self, captured: Collection[int]) -> list[Condition]:
        """The guarded state, but for the layouts of `captured` tensors, which are asked with the rest of those."""
        return [_judged(g.getter, g.value) for g in self._program.guarded.state if id(g.layout) not in captured]

    def _lifted_alike(self, tensors: list[Tensor]) -> bool:
        """Whether lifted places hold what they held, but for its value: tensors of their own."""
        ids = {id(c.tensor) for c in self._captured}
        ids.update(map(id, tensors))
        for get, shape, dtype, constant in self._lifted_kinds:
            value = get()
            if not isinstance(value, Tensor) or id(value) in ids:
                return False
            if tuple(value._d.shape) != shape or value._dtype() != dtype or (value._n is None) is not constant:
                return False
            ids.add(id(value))
        return True

    def broken(self, tensors: list[Tensor], packs: Packs | None = None) -> list[str]:
        """What is not so, a sentence each."""
        found = self._environment.broken()
        for t, shape, dtype, constant, *_ in self._captured:
            name = self._environment.names.get(id(t), "a captured tensor")
            if (tuple(t._d.shape), t._dtype()) != (shape, dtype):
                found.append(f"`{name}` has another shape or dtype")
            elif (t._n is None) is not constant:
                found.append(f"`{name}`.requires_grad changed to {constant}")
        if any(type(s.get()) is not s.kind for s in self._numbers) or not self._lifted_alike(tensors):
            # the numbers that the rest is computed from may be missing
            return found or ["a value that is read anew at each call is of another kind"]
        found += [f"{what} changed from {v!r} to {g()!r}" for g, v, what, _ in self._program.guarded.state if g() != v]
        for position, getter, value, what, _ in self._program.guarded.arguments:
            if getter(tensors[position]) != value:
                name = self._program.graph.input_names[self._program.sources.index(Argument(position))]
                found.append(f"of argument '{name}', {what} changed")
        if not self._sharing.holds(tensors):
            found.append("arguments share memory in another way")
        if packs is not None and (why := packs.misfit()):
            found.append(why)
        return found


def _judged(getter: Callable[[], Any], value: Any) -> Condition:
    """The condition that `getter() == value`, see `eager.core.interpreter.Interpreter.guard`."""

    def differs(name: Callable[[Any], str]) -> str:
        return f"{name(getter)}() != {name(value)}"

    words: Sequence[Word] | None = getattr(getter, "words", None)
    if (reads := getattr(getter, "reads", None)) is not None:
        versions = [version_of(read) for read in reads]
        words = None if None in versions else [word for version in versions for word in version or ()]
    return Judged(words, getattr(getter, "quick", differs), functools.partial(_gives, getter, value))


def _gives(getter: Callable[[], Any], value: Any) -> bool:
    return bool(getter() == value)
