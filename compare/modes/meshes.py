"""The modes that a call with tensors on a mesh is run in besides: as it is, and as a program for the mesh."""

from __future__ import annotations

from typing import final

import graphc
from compare.cases.case import Case
from compare.cases.meshes import Laid, on_mesh
from compare.cases.outcome import Outcome
from compare.locating.culprit import Culprit
from compare.locating.on_meshes import first_on_mesh
from compare.locating.stages import in_traceback
from compare.modes.calls import Compiled
from compare.modes.protocol import Mode


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
        """The step on the mesh that goes wrong; or what is at fault in any compiled program."""
        found = first_on_mesh(lambda: self.run(case))
        return found or (Compiled().locate(case, label, outcome) if self._compiled else in_traceback(outcome.error))


def modes_of(laid: list[Laid]) -> list[Mode]:
    """The modes that there are for a call with these tensors on a mesh."""
    return [OnMesh(laid), OnMesh(laid, compiled=True)] if laid else []
