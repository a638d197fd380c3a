"""Which device a program is for: that of its tensors. A program runs on one device."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, final

from eager.core.devices import CPU, device, device_of_mesh
from eager.core.placed import DIFFERENT, NOT_DISTRIBUTED, implicit_replication, is_placed
from eager.core.tensor import Tensor
from eager.distributed.device_mesh import DeviceMesh, described
from graphc import errors
from graphc.capture.location import user_line
from graphc.capture.sources import Argument, Captured, GradOf, Lifted
from graphc.capture.trace_state import TraceState
from graphc.ir import INPUT, Node, Symbol
from graphc.ops import OPS, Op
from graphc.scoped import variable
from graphc.sharding.regions import CROSSING, FROM_LOCAL, TO_LOCAL

SHARD = OPS["shard"]
PLAIN = "plain"
alike: ContextVar[bool] = ContextVar("alike", default=False)


def plain_alike(told: bool) -> AbstractContextManager[None]:
    """Context: what is traced is given plain tensors that are the same in all processes, if it was `told` how all lie.

    Else each process has its own, as in PyTorch.
    """
    return variable(alike, told)


def _both(a: DeviceMesh, b: DeviceMesh) -> DeviceMesh:
    return a._with(b) if a._numbers is not None else a._joined(b, "compile")


@final
class Placement:
    """The device of the tensors that a trace has met so far, and what it moves there.

    What the user moves to the device of the program needs no step of its own: the program is given it where it is.
    """

    def __init__(self, state: TraceState):
        self._state = state
        self._target: device | None = None  # where something is moved to
        self._moved: set[int] = set()  # ids of tensors, given to the program, that are moved
        self._met: list[DeviceMesh] = []  # those that tensors are put on
        self._given: list[device] = []
        self._seen = 0, 0  # of the arguments and sources, those whose device is in `_given`
        self._known: dict[int, tuple[Node, Any]] = {}  # the mesh of what a node computes, see `_mesh_of`

    @property
    def device(self) -> device:
        """Where the program runs, as far as it is known."""
        arguments, sources = self._state.arguments, self._state.sources
        if self._seen != (len(arguments), len(sources)):
            first, second = self._seen
            new = [*arguments[first:], *(s.tensor for s in sources[second:] if isinstance(s, Captured))]
            self._given += [t.device for t in new if isinstance(t, Tensor) and is_placed(t)]
            self._seen = len(arguments), len(sources)
        found = [*self._given, *map(device_of_mesh, self._met)]
        if self._target is not None:
            found.insert(0, self._target)
        if found and found[0].mesh is not None:  # the part of the mesh that has all of them
            meshes = dict.fromkeys(d.mesh for d in found if d.mesh is not None)
            return device_of_mesh(functools.reduce(_both, meshes))
        return found[0] if found else CPU

    def where(self, tensor: Tensor) -> device:
        """The device of a traced tensor: between processes it may be this one's own."""
        where = self.device
        if where.mesh is None or not self.separates(where.mesh):
            return where
        mesh = self._mesh_of(tensor)
        return device_of_mesh(mesh) if isinstance(mesh, DeviceMesh) else CPU

    @staticmethod
    def separates(mesh: DeviceMesh) -> bool:
        """See `Interpreter`."""
        return mesh._numbers is not None and not alike.get()

    def lies(self, tensor: Tensor) -> Any:
        """See `Interpreter`: between processes it is known of inputs, and of what has been laid on purpose."""
        mesh = self._mesh_of(tensor)
        if not isinstance(mesh, DeviceMesh) or mesh._numbers is None:
            return None
        node = self._state.builder.nodes[tensor._d.id]
        if node.op is INPUT:
            return self._state.given(self._state.sources[self._number(node.id)])._d.laid
        if node.op is SHARD and None not in node.params["spec"]:
            return node.params["spec"]
        return None

    def check(self, op: Op, tensors: Sequence[Any], params: Any) -> None:
        """Note what `op` tells of meshes. RuntimeError, as PyTorch's, where plain tensors meet those on the mesh."""
        if op is FROM_LOCAL:
            mesh = described(params["mesh"])
            self._met += [] if mesh is None else [mesh]
            return
        where = self.device
        if where.mesh is None or not self.separates(where.mesh) or implicit_replication.get():
            return
        found = [(self._mesh_of(t), math.prod(t._d.shape)) for t in tensors if isinstance(t, Tensor)]
        if any(isinstance(m, DeviceMesh) for m, _ in found) and any(m is PLAIN and n > 1 for m, n in found):
            raise RuntimeError(NOT_DISTRIBUTED.format(op.name))

    def _number(self, id: int) -> int:
        return self._state.builder.inputs.index(id)

    def _mesh_of(self, tensor: Tensor) -> Any:
        """The mesh of a tensor, traced or not; `PLAIN` for one that each process has of its own, None for either."""
        if tensor._d.__class__ is not Symbol:
            if id(tensor) in self._state.fresh:
                return None
            mesh = tensor.device.mesh
            return PLAIN if mesh is None else mesh
        todo, nodes, known = [tensor._d.id], self._state.builder.nodes, self._known
        if todo[0] not in nodes:
            return None
        while todo:
            node = nodes[todo[-1]]
            missing = [i for i in node.inputs if i not in known or known[i][0] is not nodes[i]]
            if missing and node.op not in CROSSING:
                todo += missing
                continue
            known[todo.pop()] = node, self._mesh_by(node)
        return known[tensor._d.id][1]

    def _mesh_by(self, node: Node) -> Any:
        if node.op is TO_LOCAL:
            return PLAIN
        if node.op is FROM_LOCAL:
            return described(node.params["mesh"])
        if node.op is not INPUT:
            found = {self._known[i][1] for i in node.inputs} - {None}
            meshes = [mesh for mesh in found if isinstance(mesh, DeviceMesh)]
            return functools.reduce(_both, meshes) if meshes else next(iter(found), None)
        source: Any = self._state.sources[self._number(node.id)]
        source = source.of if isinstance(source, GradOf) else source
        if not isinstance(source, (Argument, Captured, Lifted)) or (isinstance(source, Lifted) and source.kind):
            return None
        given = self._state.given(source)
        return self._mesh_of(given) if isinstance(given, Tensor) else None

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
