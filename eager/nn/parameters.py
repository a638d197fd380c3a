"""How layers make their parameters."""

from __future__ import annotations

import math
from typing import Any

from eager.core.devices import META, check_device
from eager.core.dtypes import to_numpy
from eager.core.interpreter import IMMEDIATE, current_interpreter, interpreting, on_arrays
from eager.core.meta import Meta
from eager.core.parameter import Parameter
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.casts import placed
from eager.functional.creation import sizes_for
from eager.nn import init
from eager.nn.module import Module
from graphc.ops.dtypes import default_float


def new_parameter(shape: tuple[int, ...], device: Any, dtype: Any) -> Parameter:
    """A Parameter of `shape` whose values are still to be set."""
    kind = default_float() if dtype is None else to_numpy(dtype)
    shape = sizes_for("empty", shape)
    where = check_device(device)
    if where is META:
        return Parameter(Tensor._wrap(Meta(shape, kind)))
    with interpreting(IMMEDIATE):
        made = Parameter(placed(E.full(shape=shape, value=0, dtype=kind), where))
    current_interpreter().begun(made)
    return made


def add_parameters(module: Module, device: Any, dtype: Any, **shapes: tuple[int, ...] | None) -> None:
    """Register a parameter of each shape, whose values are still to be set, under its name; None reserves the name."""
    for name, shape in shapes.items():
        module.register_parameter(name, None if shape is None else new_parameter(shape, device, dtype))


def affine_init(module: Module) -> None:
    """Set `weight` to ones and `bias` to zeros, where there are such."""
    for name, value in (("weight", 1), ("bias", 0)):
        parameter = module._parameters.get(name)
        if parameter is not None:
            init.constant_(parameter, value)


def uniform_init(module: Module, fan_in: int) -> None:
    """All parameters uniform in +-1 / sqrt(fan_in)."""
    bound = 1.0 / math.sqrt(fan_in) if fan_in > 0 else 0
    for parameter in module.parameters():
        init.uniform_(parameter, -bound, bound)


def fan_in_init(weight: Tensor, bias: Tensor | None) -> None:
    """Uniform in +-1 / sqrt(fan_in): the default of linear and convolutional layers."""
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        fan_in, _ = init._calculate_fan_in_and_fan_out(weight)
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        init.uniform_(bias, -bound, bound)


def guard_training(module: Module) -> bool:
    """`module.training`; a captured program is right only while that does not change."""
    if not on_arrays():
        what = f"`training` of {type(module).__name__}"
        current_interpreter().guard(lambda: module.training, module.training, what)
    return module.training
