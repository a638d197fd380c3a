"""Declaring an operation for both modes."""

import eager as torch
from graphc.ops import op, rules
from graphc.ops.spec import Trait

cube = op("cube_of_types", "x", impl=lambda xp, x: x**3, rule=rules.pointwise_float, traits=Trait.NONE)
print(cube.name, cube.args, cube.pointwise)
print(torch.source("tanh", torch.float64))
op("cube_of_types")  # error: reportCallIssue
op("cube_of_types", "x", implementation="exp")  # error: reportCallIssue
cube.nosuch  # error: reportAttributeAccessIssue, reportUnknownMemberType, reportUnusedExpression
torch.source(3)  # error: reportArgumentType
