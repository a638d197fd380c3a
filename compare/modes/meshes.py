"""The modes that a call with tensors on a mesh is run in besides: as it is, and as a program for the mesh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

import numpy as np

import graphc
from compare.cases.case import Case
from compare.cases.meshes import Laid, on_mesh
from compare.cases.outcome import Outcome
from compare.judging.shares import near
from compare.locating.culprit import Culprit
from compare.modes.protocol import Mode
from graphc.sharding.mesh import Mesh, mesh_of


@final
class OnMesh:
    """The function on the mesh: op by op, or `compiled`. All other modes run it on one device."""

    wide, repeats = False, False

    def __init__(self, laid: list[Laid], compiled: bool = False):
        self.name = "compiled on the mesh" if compiled else "on the mesh"
        self._laid, self._compiled = laid, compiled

    def run(self, case: Case) -> Outcome:
        fn = graphc.compile(case.fn) if self._compiled else case.fn
        return case.observe(on_mesh(fn, self._laid, {id(i.tensor): i.name for i in case.inputs}))

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        """The devices whose parts of a tensor are wrong, while those of others are right."""
        found, expected = outcome.arrays().get(label), case.observe(case.fn).arrays().get(label)
        tensor = next((i.tensor for i in case.inputs if label == f"{i.name} after the call"), None)
        laid = next((each for each in self._laid if each.tensor is tensor), None)
        if laid is None or found is None or expected is None or found.shape != expected.shape:
            return None
        mesh = mesh_of(laid.where.mesh)
        wrong: list[str] = []
        for place in np.ndindex(*mesh.shape):
            at = dict(zip(mesh.names, place, strict=True))
            part = tuple(_own(size, axes, mesh, at) for size, axes in zip(found.shape, laid.dims, strict=True))
            if not near(found[part], expected[part]):
                wrong.append(" ".join(f"{axis}={k}" for axis, k in at.items()))
        if len(wrong) == mesh.size:
            return None
        return Culprit("part of a tensor", evidence=f"only that of {', '.join(wrong)} is wrong")


def _own(size: int, axes: Sequence[str], mesh: Mesh, at: Mapping[str, int]) -> slice:
    """The part of a dim that the device at a place of the mesh has."""
    number = 0
    for axis in axes:
        number = number * mesh.sizes[axis] + at[axis]
    each = size // mesh.count(axes)
    return slice(number * each, (number + 1) * each)


def modes_of(laid: list[Laid]) -> list[Mode]:
    """The modes that there are for a call with these tensors on a mesh."""
    return [OnMesh(laid), OnMesh(laid, compiled=True)] if laid else []
