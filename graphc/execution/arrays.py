"""The lines of a call that depend on whose arrays a program takes and returns: those of XLA, or NumPy's.

XLA's may still be computed when they are returned, and stand in a tensor as `Deferred`; memory that is NumPy's may
still be read then, so that it is awaited. A program of NumPy is done when it returns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, final

import numpy as np

from eager.core.stand_ins import Deferred
from eager.core.tensor import Tensor
from graphc.capture.generated import Names, indented
from graphc.execution.plan import Services
from graphc.ir import INPUT


class Arrays(Protocol):
    """Statements about arrays. `out` is what the program returns, `tensor` the expression of a tensor."""

    @property
    def head(self) -> Sequence[str]:
        """What stands before the arrays of the arguments are fetched."""
        ...

    def argument(self, k: int, name: str, constant: bool, in_place: bool) -> list[str]:
        """See whether tensor `name` is as its signature says, in variables whose names end with k; fetch a<k>.

        in_place  whether the program may read NumPy's memory where it is: it keeps no arrays beyond the call
        """
        ...

    def fetched(self, x: str, tensor: str) -> list[str]:
        """Fetch the array of a tensor as `x`."""
        ...

    def run(self, arrays: Sequence[str]) -> list[str]:
        """Call the program."""
        ...

    def run_into(self, arrays: Sequence[str]) -> list[str]:
        """The same, where it may take arrays over: its outputs are in `done` before anything can happen."""
        ...

    def awaited(self) -> list[str]:
        """Wait for what may still be reading memory that the caller owns."""
        ...

    def verified(self) -> list[str]:
        """Ask whether the program has failed."""
        ...

    def taken(self, x: str, data: str, loaded: bool) -> str:
        """Whether `x`, the array of these data, is not the program's to take over; `loaded`: the guards have asked."""
        ...

    def wrapped(self, k: int, shape: tuple[int, ...], dtype: np.dtype) -> list[str]:
        """Make output number k the tensor w<k>."""
        ...

    def written(self, k: int, tensor: str, read: bool, shape: tuple[int, ...], dtype: np.dtype) -> list[str]:
        """Give a captured tensor output number k; `read`: whether the program was given its array."""
        ...

    @property
    def deferred(self) -> bool:
        """Whether programs return `Deferred` data."""
        ...

    @property
    def outputs(self) -> str:
        """The expression of the outputs, without what tells of failures."""
        ...


def arrays_of(services: Services, names: Names) -> Arrays:
    """The statements for the arrays of a program."""
    if services.where is not None:
        return PlacedArrays(services, names)
    return HostArrays(services, names) if services.executable.on_host else DeviceArrays(services, names)


class DeviceArrays:
    """XLA's."""

    head = (" on_host = False",)
    deferred = True

    def __init__(self, services: Services, names: Names):
        self._services, self._names = services, names

    @property
    def _program(self) -> str:
        return self._names.of(self._services.executable)

    def argument(self, k: int, name: str, constant: bool, in_place: bool) -> list[str]:
        lines = [f"  known, a{k} = place{k}.known", f"  if known() is not d: a{k} = place{k}.fetch({name}, d)"]
        return [
            f" if {name}.__class__ is not class{k} or {name}._n is {'not ' if constant else ''}None: return MISS",
            f" d = {name}._d",
            f" if d.shape != shape{k}: return MISS",
            " if d.__class__ is Deferred:",
            f"  if d.numpy_dtype is not dtype{k}: return MISS",
            f"  a{k} = d.array",
            " elif d.__class__ is ndarray:",
            f"  if d.dtype is not dtype{k}: return MISS",
            *(lines if in_place else [f"  a{k} = d"]),
            "  on_host = True",
            " else: return MISS",
        ]

    def fetched(self, x: str, tensor: str) -> list[str]:
        return [
            f" d = {tensor}._d",
            f" if d.__class__ is Deferred: {x} = d.array",
            f" else: {x} = d if d.__class__ is ndarray else {self._names.of(self._services.unsealed)}(d); "
            "on_host = True",
        ]

    def run(self, arrays: Sequence[str]) -> list[str]:
        given = ", ".join(arrays)
        return [
            f" try: out = {self._program}.dispatch({given})",
            f" except elsewhere: out = {self._program}.dispatch_anywhere({given})",
        ]

    def run_into(self, arrays: Sequence[str]) -> list[str]:
        given = "".join(f"{a}, " for a in arrays)
        return [
            f" try: {self._program}.into(done, ({given}))",
            f" except elsewhere: {self._program}.into_anywhere(done, ({given}))",
        ]

    def awaited(self) -> list[str]:
        graph = self._services.executable.graph
        # all of them are there when the program ends, but those that it was given, and empty ones
        sizes = [0 if (n := graph.nodes[id]).op is INPUT else math.prod(n.shape) for id in graph.outputs]
        largest = max(sizes, default=0)
        if not largest:
            return [" if on_host: block(out)"]
        return [f" if on_host: out[{sizes.index(largest)}].block_until_ready()"]

    def verified(self) -> list[str]:
        # most is done by then: it has been running meanwhile
        if not self._services.executable.fails:
            return []
        return _guarded([f" {self._program}.verify(out)"], self._names.of(self._services.failed))

    def taken(self, x: str, data: str, loaded: bool) -> str:
        # ours to take: a program made it, and only the tensor and getrefcount hold the stand-in, only the stand-in,
        # `x` and getrefcount the array
        held = f"({data}.__class__ is not Deferred or refs({data}) > 2)"
        return f"refs({x}) > 3 or {f'not alone and {held}' if loaded else held}"

    def wrapped(self, k: int, shape: tuple[int, ...], dtype: np.dtype) -> list[str]:
        return [
            " d = make(Deferred)",
            f" d.array, d.shape, d.numpy_dtype = out[{k}], {self._names.of(shape)}, {self._names.of(dtype)}",
            f" w{k} = new(Tensor)",
            f" w{k}._d, w{k}._n = d, None",
        ]

    def written(self, k: int, tensor: str, read: bool, shape: tuple[int, ...], dtype: np.dtype) -> list[str]:
        new = f"Deferred(out[{k}], {self._names.of(shape)}, {self._names.of(dtype)})"
        return [  # no name for its data, which `overwrite` would count as someone else's
            f" if {tensor}._d.__class__ is Deferred: {tensor}._d.array = out[{k}]",
            f" else: overwrite({tensor}, {new})",
        ]

    @property
    def outputs(self) -> str:
        return "out[:-1]" if self._services.executable.fails else "out"


@final
class PlacedArrays(DeviceArrays):
    """XLA's, of tensors that are on a device."""

    def argument(self, k: int, name: str, constant: bool, in_place: bool) -> list[str]:
        return [
            f" d = {name}._d",
            f" if ({name}.__class__ is not class{k} or d.__class__ is not Placed or d.device is not where{k}"
            f" or d.shape != shape{k} or d.numpy_dtype is not dtype{k}"
            f" or {name}._n is {'not ' if constant else ''}None): return MISS",
            f" a{k} = d.array",
        ]

    def fetched(self, x: str, tensor: str) -> list[str]:
        return [
            f" d = {tensor}._d",
            f" if d.__class__ is Placed or d.__class__ is Deferred: {x} = d.array",
            f" else: {x} = {tensor}._array(); on_host = True",  # a number, or what the program moves
        ]

    def taken(self, x: str, data: str, loaded: bool) -> str:
        # the memory, what stands for it, `x` and getrefcount hold it; whoever else does has to keep it as it is
        number = super().taken(x, data, loaded)  # on the CPU, such as a count of steps
        return f"(refs({x}) > 4 if {data}.__class__ is Placed else {number})"

    def wrapped(self, k: int, shape: tuple[int, ...], dtype: np.dtype) -> list[str]:
        where = self._services.place(k)
        if where is None:  # this process's own
            return super().wrapped(k, shape, dtype)
        return [f" w{k} = new(Tensor)", f" w{k}._d, w{k}._n = Placed(out[{k}], {self._names.of(where)}), None"]

    def written(self, k: int, tensor: str, read: bool, shape: tuple[int, ...], dtype: np.dtype) -> list[str]:
        number = super().written(k, tensor, read, shape, dtype)  # on the CPU, such as a count of steps
        return [f" if {tensor}._d.__class__ is Placed: {tensor}._d.write(out[{k}])", " else:", *indented(number)]


@final
class HostArrays:
    """NumPy's."""

    head = ()
    deferred = False

    def __init__(self, services: Services, names: Names):
        self._services, self._names = services, names

    @property
    def _program(self) -> str:
        return self._names.of(self._services.executable.dispatch)

    def argument(self, k: int, name: str, constant: bool, in_place: bool) -> list[str]:
        there = "is not" if constant else "is"
        return [
            f" a{k} = {name}._d",
            f" if a{k}.__class__ is Deferred: a{k} = {name}._array()",
            f" if (a{k}.__class__ is not ndarray or a{k}.shape != shape{k} or a{k}.dtype is not dtype{k}"
            f" or {name}.__class__ is not class{k} or {name}._n {there} None): return MISS",
        ]

    def fetched(self, x: str, tensor: str) -> list[str]:
        fetch = self._names.of(_fetch), self._names.of(self._services.unsealed)
        return [f" t = {tensor}", f" {x} = t._d", f" if {x}.__class__ is not ndarray: {x} = {fetch[0]}(t, {fetch[1]})"]

    def run(self, arrays: Sequence[str]) -> list[str]:
        return self._tried(f" out = {self._program}({', '.join(arrays)})")

    def run_into(self, arrays: Sequence[str]) -> list[str]:
        return self._tried(f" done.append({self._program}({', '.join(arrays)}))")

    def _tried(self, line: str) -> list[str]:
        if not self._services.executable.fails:
            return [line]
        return _guarded([line], self._names.of(self._services.failed))

    def awaited(self) -> list[str]:
        return []

    def verified(self) -> list[str]:
        return []

    def taken(self, x: str, data: str, loaded: bool) -> str:
        return "True"

    def wrapped(self, k: int, shape: tuple[int, ...], dtype: np.dtype) -> list[str]:
        return [f" w{k} = new(Tensor)", f" w{k}._d, w{k}._n = out[{k}], None"]

    def written(self, k: int, tensor: str, read: bool, shape: tuple[int, ...], dtype: np.dtype) -> list[str]:
        return [f" replace({tensor}, out[{k}], {int(read)})"]

    outputs = "out"


def _guarded(lines: list[str], failed: str) -> list[str]:
    return [" try:", *indented(lines), " except Exception as error:", f"  {failed}(error)", "  raise"]


def _fetch(tensor: Tensor, unsealed: Callable[[Any], Any]) -> np.ndarray:
    """The ndarray of a tensor whose data is none."""
    data = tensor._d
    return tensor._array() if data.__class__ is Deferred else np.asarray(unsealed(data))
