"""Which device a program is for: that of its tensors. A program runs on one device."""

from __future__ import annotations

import functools
from typing import final

from eager.core.devices import CPU, device, device_of_mesh
from eager.core.placed import DIFFERENT, is_placed
from eager.core.tensor import Tensor
from graphc import errors
from graphc.capture.location import user_line
from graphc.capture.sources import Argument, Captured, Lifted
from graphc.capture.trace_state import TraceState


@final
class Placement:
    """The device of the tensors that a trace has met so far, and what it moves there.

    What the user moves to the device of the program needs no step of its own: the program is given it where it is.
    """

    def __init__(self, state: TraceState):
        self._state = state
        self._target: device | None = None  # where something is moved to
        self._moved: set[int] = set()  # ids of tensors, given to the program, that are moved

    @property
    def device(self) -> device:
        """Where the program runs, as far as it is known."""
        found = [t.device for t in self._given() if is_placed(t)]
        if self._target is not None:
            found.insert(0, self._target)
        if found and found[0].mesh is not None:  # the part of the mesh that has all of them
            joined = [d.mesh for d in found if d.mesh is not None]
            return device_of_mesh(functools.reduce(lambda a, b: a._joined(b, "compile"), joined))
        return found[0] if found else CPU

    def _given(self) -> list[Tensor]:
        state = self._state
        arguments = [t for t in state.arguments if isinstance(t, Tensor)]
        return [*arguments, *(s.tensor for s in state.sources if isinstance(s, Captured))]

    def moved(self, tensor: Tensor, where: device) -> Tensor | None:
        """`tensor` on the device `where`. CaptureError if that is not the device of the program."""
        if where.type == "meta":
            return None
        if self.device.mesh is not None:  # a program on a mesh has all that it is given on the mesh
            return tensor
        if self.device is not CPU and where is not self.device:
            raise errors.CaptureError(errors.MOVED_AWAY.format(source=self.device, where=where, used=user_line()))
        self._target = where
        owner = self._state.owner_of(tensor)
        if isinstance(owner, (Argument, Captured, Lifted)):
            self._moved.add(id(self._state.given(owner)))
        return tensor

    def settled(self) -> device | None:
        """The device of the program, None for the CPU. RuntimeError if it is given tensors on several."""
        if (where := self.device) is CPU:
            return None
        if where.mesh is not None:  # where plain tensors are replicated, or lie as they are told to
            return where
        state = self._state
        for source in state.sources:
            if isinstance(source, (Argument, Captured)) and isinstance(given := state.given(source), Tensor):
                number = given.device is CPU and (not given._d.shape or given._dtype().kind in "iub")
                if given.device is not where and not number and id(given) not in self._moved:
                    raise RuntimeError(DIFFERENT.format(where, given.device))
        return where
