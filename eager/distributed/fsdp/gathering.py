"""Parameters in parts, whole while their module computes: the hooks of a module that `fully_shard` was given.

Where one process has all devices, a batch is split over them, and each op is one program for all. Between processes,
each computes with plain tensors of its own, and the gradients of what it has gathered are averaged: as in PyTorch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, final

from eager.core.grad_mode import no_grad
from eager.core.interpreter import current_interpreter
from eager.core.parameter import Parameter
from eager.core.pytree import tree_map
from eager.core.tensor import Tensor
from eager.distributed.device_mesh import DeviceMesh
from eager.distributed.tensor.dtensor import DTensor, available, distributed, is_distributed, place
from eager.distributed.tensor.local import averaged
from eager.distributed.tensor.placements import Partial, Placement, Replicate, Shard
from eager.nn import Module

LOWERED = "fully_shard: mp_policy is of eager mode. Remedy: torch.autocast, which lowers precision in compiled programs"


@final
class Gathering:
    """Hooks of `module`, which gather the parameters that it owns over `mesh`, and split its batch.

    policy: the dtypes to compute in
    """

    def __init__(
        self, module: Module, owned: Mapping[int, Sequence[Placement]], mesh: DeviceMesh, policy: Any
    ):  # fmt: skip
        self._module, self._mesh, self._policy = module, mesh, policy
        # where the parameters are kept that it owns, under which name, and how they lie: other objects may take their
        # places (`to_empty`, `load_state_dict(assign=True)`)
        self._slots = [
            (submodule._parameters, name, owned[id(parameter)])
            for submodule in module.modules()
            for name, parameter in submodule._parameters.items()
            if parameter is not None and id(parameter) in owned
        ]
        self._depth = 0  # a module may call itself
        self._held: list[tuple[dict[str, Any], str, Tensor]] = []  # in which table, its name, the parameter
        self._plain: list[bool] = []  # of each call going on: whether its batch was a plain tensor

    def install(self) -> None:
        """Let the module call these."""
        self._module.register_forward_pre_hook(self._before, prepend=True, with_kwargs=True)
        self._module.register_forward_hook(self._after, always_call=True)

    def around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method of the module, for which its parameters are gathered as for its forward."""

        @functools.wraps(method)
        def run(*args: Any, **kwargs: Any) -> Any:
            given = self._before(self._module, args, kwargs)
            args, kwargs = (args, kwargs) if given is None else given
            output = None
            try:
                output = method(*args, **kwargs)
            finally:
                output = self._after(self._module, args, output)
            return output

        return run

    @contextmanager
    def whole(self, keep: bool, gradients: bool) -> Iterator[None]:
        """A context in which the module has plain parameters, whole. keep: what is written to them is kept.
        gradients: theirs, too."""
        made: list[tuple[dict[str, Any], str, Any]] = []
        for table, name, _ in self._slots:
            parameter: Any = table[name]
            with no_grad():
                full = Parameter(parameter.full_tensor().clone(), parameter.requires_grad)
                if gradients and parameter.grad is not None:
                    full.grad = parameter.grad.full_tensor().clone()
            table[name] = full
            made.append((table, name, parameter))
        try:
            yield
        finally:
            for table, name, parameter in made:
                full, table[name] = table[name], parameter
                with no_grad():
                    if keep:
                        parameter.copy_(distributed(full.detach(), parameter.device_mesh, parameter.placements))
                    if keep and full.grad is not None and parameter.grad is not None:
                        parameter.grad.copy_(distributed(full.grad, parameter.device_mesh, parameter.placements))

    def _before(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not available(self._mesh):
            self._plain.append(False)
            self._depth += 1
            return None
        traced = not current_interpreter().immediate
        separate = self._mesh._numbers is not None and current_interpreter().separates(self._mesh)
        if self._policy.param_dtype is not None and traced and not separate:
            raise NotImplementedError(LOWERED)
        given: Any = (args, kwargs)
        if self._policy.cast_forward_inputs and self._policy.param_dtype is not None:
            given = tree_map(_as(self._policy.param_dtype), given)
        split = Splitting(self._mesh)
        if not separate:
            given = tree_map(split, given)
        self._plain.append(split.met)
        self._depth += 1
        if self._depth == 1 and (separate or not traced):  # else the program gathers by itself
            self._gather()
        return given

    def _gather(self) -> None:
        made = dict[int, Tensor]()
        for table, name, placements in self._slots:
            parameter: Any = table[name]
            if not is_distributed(parameter):
                place(parameter, self._mesh, placements, None)
            self._held.append((table, name, parameter))
        for table, name, parameter in self._held:
            if id(parameter) not in made:
                made[id(parameter)] = _as(self._policy.param_dtype)(gathered(parameter, self._mesh))
            table[name] = made[id(parameter)]

    def _after(self, module: Module, args: Any, output: Any) -> Any:
        self._depth -= 1
        if not self._depth:
            for table, name, parameter in self._held:
                table[name] = parameter
            self._held.clear()
        if self._policy.output_dtype is not None:
            output = tree_map(_as(self._policy.output_dtype), output)
        return tree_map(_whole, output) if self._plain.pop() and current_interpreter().immediate else output


@final
class Splitting:
    """Plain tensors become parts of a batch on the mesh. met: whether there was one."""

    def __init__(self, mesh: DeviceMesh):
        self._mesh, self.met = mesh, False

    def __call__(self, value: Any) -> Any:
        traced = not current_interpreter().immediate
        if not isinstance(value, Tensor) or not value.ndim or (is_distributed(value) and not traced):
            return value
        self.met = True
        return distributed(value, self._mesh, (Shard(0),) * self._mesh.ndim)


def gathered(parameter: Any, mesh: DeviceMesh) -> Any:
    """A parameter, whole along the dims of `mesh`: between processes a plain tensor, whose gradients are averaged; if
    it is in parts on other dims, too, one on the mesh of these."""
    if mesh._numbers is None:
        return parameter.redistribute(mesh, [Replicate()] * mesh.ndim)
    lies: DeviceMesh = parameter.device_mesh
    over = [name in mesh._axes for name in lies._axes]
    left = [p for p, own in zip(parameter.placements, over, strict=True) if not own]
    whole = [Replicate() if own else p for p, own in zip(parameter.placements, over, strict=True)]
    terms = [Partial("avg") if own else p for p, own in zip(parameter.placements, over, strict=True)]
    if current_interpreter().immediate:
        part = parameter.redistribute(lies, whole).to_local(grad_placements=terms)
    else:
        part = averaged(parameter, over)
    if all(over):
        return part
    others = lies[tuple(name for name, own in zip(lies._axes, over, strict=True) if not own)]
    return DTensor.from_local(part, others, left)


def _as(dtype: Any) -> Any:
    """What casts floating tensors; None leaves them."""
    return lambda x: x.to(dtype) if dtype is not None and isinstance(x, Tensor) and x.is_floating_point() else x


def _whole(value: Any) -> Any:
    return value.full_tensor() if isinstance(value, DTensor) else value
