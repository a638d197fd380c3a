"""What a traced function has done before it raised."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager import autograd
from eager.core.interpreter import IMMEDIATE, interpreting
from eager.core.stand_ins import Deferred
from eager.core.tensor import Tensor
from graphc.capture.effects import effects_of
from graphc.capture.materialization import Materializer
from graphc.capture.sources import DataOf, GradOf, GradsOf, LeafFlag, PastOf
from graphc.capture.state.argument_containers import Containers
from graphc.capture.state.environment import Environment
from graphc.capture.tracer import Tracer
from graphc.capture.tree import map_leaves
from graphc.capture.user_objects import is_traced, opener
from graphc.execution.steps import overwrite


def abandon(given: Any, environment: Environment, tracer: Tracer, containers: Containers) -> None:
    """Carry out what a traced function has done before it raised. Raises what eager would have raised before that.

    given  the arguments of the call: (args, kwargs)

    On a mesh of processes nothing is carried out: the values take an exchange, for which the others may not be there.
    """
    mesh = tracer.placement.device.mesh
    if mesh is not None and mesh._numbers is not None:
        return
    with interpreting(IMMEDIATE):
        tracer.concretization.draw_all()
        tracer.concretization.hold_inputs()  # values are computed from what is about to be written
        made: dict[int, Tensor] = {}
        for target, id_, _, fresh in effects_of(tracer):
            array = None if id_ is None else np.array(tracer.concretization.value_of_node(id_))
            if isinstance(target, LeafFlag):
                tracer.state.given(target.of).requires_grad_(target.flag)
            elif isinstance(target, PastOf):
                autograd.backward(tracer.state.given(target.of), Tensor._wrap(array), retain_graph=target.keep)
            elif isinstance(target, GradOf) and (array is None or fresh is not None):
                wrapped = None if array is None else made.setdefault(fresh or 0, Tensor._wrap(array))
                tracer.state.given(target.of)._g = wrapped
            elif isinstance(target, DataOf):
                tracer.state.given(target.of)._d = array
            elif array is not None and not isinstance(target, GradsOf):  # which no traced function has
                overwrite(tracer.state.given(target), Deferred(array, array.shape, array.dtype))
        concrete = Materializer(tracer, given)
        known: dict[int, Any] = {**containers.existing(), **environment.existing()}
        changes = [*containers.changes(), *environment.written(), *tracer.autograd.hooks.staying()]
        opened = opener(is_traced, environment.owners())
        again: dict[int, Any] = {}
        for change, after in [(c, map_leaves(c.after, _itself, "", known, opened)) for c in changes]:
            change.carry_out(map_leaves(after, concrete, "", again, opened), given)


def _itself(leaf: Any, path: str) -> Any:
    return leaf
