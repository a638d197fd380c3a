"""The memory of tensors on a device, and memories that lie side by side in another one."""

from __future__ import annotations

from typing import Any, final

from eager.core.runtime import Dims, runtime
from graphc.ops.steps import Step
from graphc.ops.strides import Strides


@final
class Memory:
    """What tensors on a device share.

    array    its present value
    stride   how it would lie there if it were PyTorch's; None if row-major
    dims     on a mesh: how it was said to lie, where it cannot since a dim does not divide; None if it lies as said
    version  the number of writes to it
    pack     the memory that it is a part of, until somebody writes it; None if it has its own
    """

    __slots__ = ("__weakref__", "_array", "_steps", "_version", "dims", "pack", "stride")
    base = None  # it owns itself

    def __init__(self, array: Any, stride: Strides, dims: Dims | None = None):
        self._array, self.stride, self.dims = array, stride, dims
        self._version = 0
        self._steps: tuple[Step, ...] = ()
        self.pack: Memory | None = None

    @property
    def array(self) -> Any:
        return self._array if self.pack is None else runtime().read(self.pack.array, self._steps)

    @array.setter
    def array(self, value: Any) -> None:
        self._array = value
        if self.pack is not None:  # an interrupt before its end leaves the old value
            self._version += self.pack.version
            self.pack = None

    @property
    def version(self) -> int:
        return self._version if self.pack is None else self._version + self.pack.version

    @version.setter
    def version(self, number: int) -> None:
        self._version += number - self.version

    def lie_in(self, pack: Memory, steps: tuple[Step, ...]) -> None:
        """Let the values be those that `steps` lead to in `pack`, which has them already."""
        self._version = self.version - pack.version
        self._steps, self.pack, self._array = steps, pack, None

    def __reduce__(self) -> tuple[Any, ...]:
        return Memory, (runtime().fetch(self.array), self.stride)  # it is put back with what is seen of it
