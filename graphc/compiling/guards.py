"""What must be so at a call, besides its signature, for a program to be right: as generated code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from sys import getrefcount
from typing import Any, final

import numpy as np

from eager.core.tensor import Deferred, Tensor
from graphc.capture.generated import Names
from graphc.capture.program import Program
from graphc.capture.sources import Argument, Captured, Lifted
from graphc.capture.state.environment import Environment
from graphc.capture.storage.sharing import Sharing

KNOWN: Mapping[str, Any] = {"Deferred": Deferred, "ndarray": np.ndarray, "refs": getrefcount}  # what the code names


@final
class _Captured:
    """The statements about one captured tensor: what is asked of its data, `d`, depends on who made that."""

    def __init__(self, names: Names, tensor: Tensor, shape: tuple[int, ...], dtype: np.dtype, miss: str):
        self._names = names
        self._tensor = names.of(tensor)
        self._miss = miss
        shaped, typed = names.of(shape), names.of(dtype)
        # a program makes its data with the same objects each time
        differs = f"if d.shape is not {shaped} and d.shape != {shaped} or d.{{0}} is not {typed} and d.{{0}} != {typed}"
        self._by_program = [f"{differs.format('numpy_dtype')}: {miss}"]
        self._by_host = ["alone = False", f"{differs.format('dtype')}: {miss}"]
        self._sealed = ["alone = False", f"{differs.format('numpy_dtype')}: {miss}"]

    def seen_alone(self) -> None:
        # the tensor, `d` and the argument of getrefcount
        self._by_program.append("if refs(d) > 3: alone = False")

    def laid_out(self, strides: Callable[[], Any], value: Any) -> None:
        check = f"if {self._names.of(strides)}() != {self._names.of(value)}: {self._miss}"
        self._by_host.append(check)
        if value is not None:  # what is not NumPy's has None
            self._by_program.append(check)
            self._sealed.append(check)

    def fetched(self, array: str, unsealed: Any) -> None:
        self._by_program.append(f"{array} = d.array")
        self._by_host.append(f"{array} = d; on_host = True")
        self._sealed.append(f"{array} = {self._names.of(unsealed)}(d); on_host = True")

    def lines(self, constant: bool) -> list[str]:
        return [
            f" d = {self._tensor}._d",
            f" if {self._tensor}._n is {'not ' if constant else ''}None: {self._miss}",
            " if d.__class__ is Deferred:", *(f"  {line}" for line in self._by_program),
            " elif d.__class__ is ndarray:", *(f"  {line}" for line in self._by_host),
            " else:", *(f"  {line}" for line in self._sealed),
        ]  # fmt: skip


@final
class Guards:
    """The guards of one program."""

    def __init__(self, program: Program, environment: Environment):
        self._program = program
        self._environment = environment
        self._captured = [
            (s.tensor, tuple(s.tensor._d.shape), s.tensor._dtype(), s.tensor._n is None)
            for s in program.sources
            if isinstance(s, Captured)
        ]
        self._layouts = {id(guard.layout): guard for guard in program.guarded.state if guard.layout is not None}
        self._numbers = [s for s in program.sources if isinstance(s, Lifted) and s.kind is not None]
        self._lifted_kinds = environment.lifting.kinds
        self._sharing = Sharing(program)

    def function(self) -> Callable[[list[Tensor]], bool]:
        """f(tensors): whether all is so, for a call with these tensors (of its signature)."""
        names = Names()
        lines = self.lines(names, "return False", "tensors")
        return names.bind("holds", ["def holds(tensors):", *lines, " return True"], KNOWN)

    def lines(
        self, names: Names, miss: str, tensors: str, arrays: Mapping[int, str] | None = None, unsealed: Any = None
    ) -> list[str]:
        """Statements that do `miss` if something is not so.

        tensors   the expression of the list of the arguments' tensors
        arrays    by id of a captured tensor, the variable for its array; `on_host` becomes true if one is NumPy's
        unsealed  f(data): the array of a tensor that was made in inference mode

        The variable `alone` tells afterwards whether a program has made the data of all tensors that are written, and
        no one else holds them: False, if that is not known.
        """
        captured = {id(t) for t, *_ in self._captured}
        watched = frozenset(map(id, self._sharing.watched))
        lines = [*self._environment.lines(names, miss), f" alone = {watched <= captured}"]
        for t, shape, dtype, constant in self._captured:
            code = _Captured(names, t, shape, dtype, miss)
            if id(t) in watched:
                code.seen_alone()
            if (layout := self._layouts.get(id(t))) is not None:
                code.laid_out(layout.getter, layout.value)
            if arrays is not None:
                code.fetched(arrays[id(t)], unsealed)
            lines += code.lines(constant)
        if self._numbers or self._lifted_kinds:
            lines.append(f" if not {names.of(self._lifted_alike)}({tensors}): {miss}")
        for getter, value, _, layout in self._program.guarded.state:
            if id(layout) not in captured:
                differs = f"{names.of(getter)}() != {names.of(value)}"
                if (quick := getattr(getter, "quick", None)) is not None:
                    lines += [" try:", f"  if ({quick(names.of)}) and {differs}: {miss}", f" except KeyError: {miss}"]
                else:
                    lines.append(f" if {differs}: {miss}")
        for position, getter, value, _ in self._program.guarded.arguments:
            lines.append(f" if {names.of(getter)}({tensors}[{position}]) != {names.of(value)}: {miss}")
        if watched and self._sharing.arguments:
            given = (f"id({tensors}[{k}]) in {names.of(watched)}" for k in self._sharing.arguments)
            lines.append(f" if {' or '.join(given)}: alone = False")
        if self._sharing.needed:
            asked = "not alone and " if self._sharing.only_alone else ""
            lines.append(f" if {asked}not {names.of(self._sharing.holds)}({tensors}): {miss}")
        return lines

    def _lifted_alike(self, tensors: list[Tensor]) -> bool:
        """Whether lifted places hold what they held, but for its value: numbers of a type, tensors of their own."""
        ids = {id(t) for t, *_ in self._captured}
        ids.update(map(id, tensors))
        for source in self._numbers:
            if type(source.get()) is not source.kind:
                return False
        for get, shape, dtype, constant in self._lifted_kinds:
            value = get()
            if not isinstance(value, Tensor) or id(value) in ids:
                return False
            if tuple(value._d.shape) != shape or value._dtype() != dtype or (value._n is None) is not constant:
                return False
            ids.add(id(value))
        return True

    def broken(self, tensors: list[Tensor]) -> list[str]:
        """What is not so, a sentence each."""
        found = self._environment.broken()
        for t, shape, dtype, constant in self._captured:
            name = self._environment.names.get(id(t), "a captured tensor")
            if (tuple(t._d.shape), t._dtype()) != (shape, dtype):
                found.append(f"`{name}` has another shape or dtype")
            elif (t._n is None) is not constant:
                found.append(f"`{name}`.requires_grad changed to {constant}")
        if not self._lifted_alike(tensors):
            # the numbers that the rest is computed from may be missing
            return found or ["a value that is read anew at each call is of another kind"]
        found += [f"{what} changed from {v!r} to {g()!r}" for g, v, what, _ in self._program.guarded.state if g() != v]
        for position, getter, value, what in self._program.guarded.arguments:
            if getter(tensors[position]) != value:
                name = self._program.graph.input_names[self._program.sources.index(Argument(position))]
                found.append(f"of argument '{name}', {what} changed")
        if not self._sharing.holds(tensors):
            found.append("arguments share memory in another way")
        return found
