"""Optimizer: parameter groups, per-parameter state, and the frame of a step.

A step under a trace runs the same code: Python numbers become constants of the program, so each group's are guarded;
state tensors are made outside the trace, so that the program reads and writes them.
"""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from eager import state
from eager.grad_mode import enable_grad, no_grad
from eager.language import E
from eager.nn.module import clear_gradient, typename
from eager.tensor import Tensor

Group = dict[str, Any]
NOT_SETTINGS = frozenset(("params", "foreach", "fused", "capturable", "differentiable"))
DUPLICATES = (
    "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; see "
    "github.com/pytorch/pytorch/issues/40967 for more information"
)


class Optimizer(ABC):
    """Base of the optimizers. A subclass passes its default settings and defines `_update(group)`.

    param_groups: dicts of "params" and settings; state: for each parameter, what is remembered between steps.
    """

    def __init__(self, params: Any, defaults: dict[str, Any]):
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + typename(params)
            )
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters with settings of their own; what they leave out is taken from the defaults.

        Raises TypeError for what is no dict of leaf Tensors, ValueError for a non-leaf or a parameter of another group.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        params = [params] if isinstance(params, Tensor) else list(params)
        for parameter in params:
            if not isinstance(parameter, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {typename(parameter)}")
            if not parameter.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
        ids = {id(p) for p in params}
        if len(ids) != len(params):
            warnings.warn(DUPLICATES, stacklevel=3)
        if any(id(p) in ids for group in self.param_groups for p in group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append({**param_group, "params": params, **self._missing(param_group)})

    def _missing(self, group: Group) -> dict[str, Any]:
        return {name: value for name, value in self.defaults.items() if name not in group}

    @abstractmethod
    def _update(self, group: Group) -> None:
        """Update the parameters of one group from their gradients."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient. `closure` recomputes the loss, which is returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        interpreter = state.current_interpreter()
        if interpreter is not None:
            self._guard(interpreter)
        with no_grad():
            for group in self.param_groups:
                self._update(group)
        return loss

    def _guard(self, interpreter: Any) -> None:
        """Tell the trace what the step depends on besides tensors: the groups, their settings, and the state in use."""
        in_use = self.state
        interpreter.guard(lambda: self.state is in_use, True)  # load_state_dict makes another
        interpreter.guard(self._sizes, self._sizes())
        for group in self.param_groups:
            interpreter.guard(lambda group=group: settings(group), settings(group))

    def _sizes(self) -> list[int]:
        return [len(group["params"]) for group in self.param_groups]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of the parameters: to None, or to zeros."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none:
                    parameter.grad = None
                else:
                    clear_gradient(parameter, False)

    def state_dict(self) -> dict[str, Any]:
        """The state by parameter number, and the groups with numbers for parameters. Tensors share memory."""
        numbers = {id(p): i for i, p in enumerate(self._parameters())}
        groups = [
            {**{k: v for k, v in group.items() if k != "params"}, "params": [numbers[id(p)] for p in group["params"]]}
            for group in self.param_groups
        ]
        return {"state": {numbers[id(p)]: s for p, s in self.state.items() if id(p) in numbers}, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over state and settings that `state_dict` returned. Raises ValueError if the groups differ in size."""
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(s["params"]) != len(g["params"]) for s, g in zip(saved, self.param_groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        parameter_of = dict(zip([i for s in saved for i in s["params"]], self._parameters(), strict=True))
        self.state = defaultdict(dict)
        for number, values in state_dict["state"].items():
            parameter = parameter_of[number]
            self.state[parameter] = {name: _fitted(name, value, parameter) for name, value in values.items()}
        for group, other in zip(self.param_groups, saved, strict=True):
            group.update(copy.deepcopy({k: v for k, v in other.items() if k != "params"}))

    def _parameters(self) -> Iterable[Tensor]:
        return (p for group in self.param_groups for p in group["params"])

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines.extend(f"    {name}: {group[name]}" for name in sorted(group) if name != "params")
        return "\n".join([*lines, ")"])


def settings(group: Group) -> tuple[Any, ...]:
    """The numbers and flags of a group that its update depends on."""
    return tuple(
        float(value) if isinstance(value, Tensor) else value
        for name, value in group.items()
        if name not in NOT_SETTINGS
    )


def zeros(shape: tuple[int, ...], dtype: np.dtype) -> Tensor:
    """A new state tensor, real even under a trace."""
    with state.interpreting(None):
        return E.full(shape=shape, value=0, dtype=dtype)


def _fitted(name: str, value: Any, parameter: Tensor) -> Any:
    """A loaded state value: tensors are copied, in the parameter's dtype unless they count steps."""
    if not isinstance(value, Tensor):
        return copy.deepcopy(value)
    if name != "step" and parameter._dtype().kind == "f":
        return Tensor._wrap(value._array().astype(parameter._dtype()))
    return Tensor._wrap(value._array().copy())


def check_unsupported(**flags: Any) -> None:
    """Raise NotImplementedError for a PyTorch switch that would change what a step records."""
    for name, value in flags.items():
        if value:
            raise NotImplementedError(f"{name}={value!r} is not supported; leave it out")


def check_setting(what: str, value: float, valid: bool) -> None:
    """Raise PyTorch's ValueError unless `valid`."""
    if not valid:
        raise ValueError(f"Invalid {what}: {value}")
