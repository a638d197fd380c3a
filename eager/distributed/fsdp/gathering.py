"""Parameters in parts, whole while their module computes: the hooks of a module that `fully_shard` was given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, final

from eager.core.interpreter import current_interpreter
from eager.core.pytree import tree_map
from eager.core.tensor import Tensor
from eager.distributed.device_mesh import DeviceMesh
from eager.distributed.tensor.dtensor import DTensor, available, distributed, is_distributed
from eager.distributed.tensor.placements import Replicate, Shard
from eager.nn import Module


@final
class Gathering:
    """Hooks of `module`, which gather the parameters that it owns over `mesh`, and split its batch."""

    def __init__(self, module: Module, owned: Iterable[Tensor], mesh: DeviceMesh):
        self._module, self._mesh = module, mesh
        self._owned = {id(p) for p in owned}
        self._depth = 0  # a module may call itself
        self._held: list[tuple[dict[str, Any], str, Tensor]] = []  # in which table, its name, the parameter
        self._plain: list[bool] = []  # of each call going on: whether its batch was a plain tensor

    def install(self) -> None:
        """Let the module call these."""
        self._module.register_forward_pre_hook(self._before, prepend=True, with_kwargs=True)
        self._module.register_forward_hook(self._after, always_call=True)

    def _before(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not available(self._mesh):
            self._plain.append(False)
            self._depth += 1
            return None
        split = Splitting(self._mesh)
        given = tree_map(split, (args, kwargs))
        self._plain.append(split.met)
        self._depth += 1
        if self._depth == 1 and current_interpreter().immediate:  # a compiled program gathers by itself
            self._gather()
        return given

    def _gather(self) -> None:
        whole, made = [Replicate()] * self._mesh.ndim, dict[int, Tensor]()
        for submodule in self._module.modules():
            table = submodule._parameters
            for name, parameter in table.items():
                if parameter is not None and id(parameter) in self._owned:
                    self._held.append((table, name, parameter))
        for table, name, parameter in self._held:
            if id(parameter) not in made:
                made[id(parameter)] = parameter.redistribute(self._mesh, whole)
            table[name] = made[id(parameter)]

    def _after(self, module: Module, args: Any, output: Any) -> Any:
        self._depth -= 1
        if not self._depth:
            for table, name, parameter in self._held:
                table[name] = parameter
            self._held.clear()
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


def _whole(value: Any) -> Any:
    return value.full_tensor() if isinstance(value, DTensor) else value
