"""Declaring an operation for both modes."""

from typing import Any

import eager as torch
from graphc.ops import op, rules
from graphc.ops.spec import Trait


def _cube(xp: Any, x: Any) -> Any:
    return x**3


cube = op("cube_of_types", "x", impl=_cube, rule=rules.pointwise_float, traits=Trait.NONE)
print(cube.name, cube.args, cube.pointwise)
print(torch.source("tanh", torch.float64))
op("cube_of_types")  # error: reportCallIssue
op("cube_of_types", "x", implementation="exp")  # error: reportCallIssue
cube.nosuch  # error: reportAttributeAccessIssue
torch.source(3)  # error: reportArgumentType
