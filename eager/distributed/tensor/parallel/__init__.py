"""Tensor parallelism: plans that place the parameters of modules. As `torch.distributed.tensor.parallel`.

Parameters lie in parts on the devices of the mesh, and in programs for it. Between processes, a plain tensor that a
module is given is a part, as `input_layouts` say, and so is what it returns with `use_local_output`. In a process that
has all devices it counts as the whole value: layouts say how it is split, and an output that is replicated becomes a
plain tensor again; one in parts stays a DTensor, whose parts no plain tensor is.

In a program the layouts are wishes about the values at these places (`graphc.shard`), where they are given.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from fnmatch import fnmatch
from typing import Any, final

from eager.core.interpreter import current_interpreter
from eager.core.tensor import Tensor
from eager.distributed.device_mesh import DeviceMesh
from eager.distributed.tensor.dtensor import DTensor, available, distributed, is_distributed
from eager.distributed.tensor.modules import distribute_parameter
from eager.distributed.tensor.parallel.loss import loss_parallel
from eager.distributed.tensor.placements import Placement, Replicate, Shard, checked
from eager.engine.language import E
from eager.nn import Embedding, Linear, Module

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel", "loss_parallel", "parallelize_module",
]  # fmt: skip

# what is split, by the class of the module: the dim of each parameter, None for whole
_COLUMNS: dict[type[Module], dict[str, int | None]] = {Linear: {"weight": 0, "bias": 0}, Embedding: {"weight": 1}}
_ROWS: dict[type[Module], dict[str, int | None]] = {Linear: {"weight": 1, "bias": None}, Embedding: {"weight": 0}}


class ParallelStyle(ABC):
    """How one module is parallelized."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        """Place the parameters of `module`, and hold its inputs and outputs as wished."""


class _Layouts(ParallelStyle):
    """A style with wishes about the inputs and outputs of a module: None leaves them to the compiler."""

    tables: dict[type[Module], dict[str, int | None]] | None = None

    input_layouts: Any = None  # how plain inputs are parts, between processes; None for as the desired ones
    desired_input_layouts: Any = None  # how inputs lie, tensors on the mesh; None for as they are
    output_layouts: Any = None
    _output_parts: Any = None  # the same of plain outputs
    use_local_input = use_local_output = False  # whether what is whole on each device is given as a plain tensor

    def __init__(
        self, outputs: Any = None, kwargs: Mapping[str, Placement] | None = None,
        given_kwargs: Mapping[str, Placement] | None = None,
    ):  # fmt: skip
        self._outputs, self._kwargs, self._given_kwargs = (
            _several(outputs),
            dict(kwargs or {}),
            dict(given_kwargs or {}),
        )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        if self.tables is not None:
            found = next((t for kind, t in self.tables.items() if isinstance(module, kind)), None)
            if found is None:
                raise NotImplementedError(f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!")
            _place(module, device_mesh, found)

        def held(values: Any, wishes: tuple[Any, ...], layouts: Any, local: bool, parts: Any = None) -> Any:
            if available(device_mesh) and current_interpreter().separates(device_mesh):
                each, wishes = functools.partial(_laid, mesh=device_mesh, local=local), _several(layouts)
            else:
                each = functools.partial(_held, mesh=device_mesh)
            known = _several(parts) or wishes
            if not isinstance(values, tuple):
                return each(values, wishes[0], known[0]) if wishes else values
            wishes, known = ((*x, *(None,) * (len(values) - len(x))) for x in (wishes, known))
            return tuple(each(v, w, k) for v, w, k in zip(values, wishes, known, strict=False))

        def before(m: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            wishes = [self._kwargs.get(name) for name in kwargs]
            parts = [self._given_kwargs.get(name) for name in kwargs]
            named = held((*kwargs.values(),), (*wishes,), wishes, self.use_local_input, parts)
            wished = self.desired_input_layouts
            given = held(args, _several(wished), wished, self.use_local_input, self.input_layouts)
            return given, dict(zip(kwargs, named, strict=True))

        def after(m: Module, args: Any, output: Any) -> Any:
            return held(output, self._outputs, self.output_layouts, self.use_local_output, self._output_parts)

        module.register_forward_pre_hook(before, with_kwargs=True)
        module.register_forward_hook(after)
        return module


class _OfWeights(_Layouts):
    """A style that splits weights; `usual` are the layouts of the inputs and outputs that it is for."""

    usual: tuple[Placement, Placement]

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ):  # fmt: skip
        super().__init__(output_layouts)
        inputs, outputs = self.usual
        self.input_layouts, self.output_layouts = (input_layouts or inputs,), (output_layouts or outputs,)
        self.desired_input_layouts, self.use_local_output = (inputs,), use_local_output


@final
class ColwiseParallel(_OfWeights):
    """A Linear whose outputs are split, an Embedding whose vectors are."""

    tables, usual = _COLUMNS, (Replicate(), Shard(-1))


@final
class RowwiseParallel(_OfWeights):
    """A Linear whose inputs are split, an Embedding whose rows are."""

    tables, usual = _ROWS, (Shard(-1), Replicate())

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        self.desired_input_layouts = (Replicate() if isinstance(module, Embedding) else Shard(-1),)
        return super()._apply(module, device_mesh)


@final
class SequenceParallel(_Layouts):
    """A normalization, say, whose activations are split along their sequence dim; its parameters are whole."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False):
        super().__init__(Shard(sequence_dim))
        self.sequence_sharding = self.desired_input_layouts = self.output_layouts = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        _place(module, device_mesh, dict.fromkeys((name for name, _ in module.named_parameters()), None))
        return super()._apply(module, device_mesh)


@final
class PrepareModuleInput(_Layouts):
    """Inputs held as `desired_input_layouts` say."""

    def __init__(
        self, *, input_layouts: Any = None, desired_input_layouts: Any = None,
        input_kwarg_layouts: Mapping[str, Placement] | None = None,
        desired_input_kwarg_layouts: Mapping[str, Placement] | None = None, use_local_output: bool = False,
    ):  # fmt: skip
        if len(_several(input_layouts)) != len(_several(desired_input_layouts)):
            raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        super().__init__(None, desired_input_kwarg_layouts, input_kwarg_layouts)
        self.input_layouts = input_layouts
        self.desired_input_layouts, self.use_local_input = desired_input_layouts, use_local_output


@final
class PrepareModuleOutput(_Layouts):
    """Outputs held as `desired_output_layouts` say."""

    def __init__(self, *, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True):
        if len(_several(output_layouts)) != len(_several(desired_output_layouts)):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")
        super().__init__(desired_output_layouts)
        self.output_layouts, self.use_local_output = desired_output_layouts, use_local_output
        self._output_parts = output_layouts


@final
class PrepareModuleInputOutput(_Layouts):
    """Both."""

    def __init__(
        self, *, input_layouts: Any = None, desired_input_layouts: Any = None,
        input_kwarg_layouts: Mapping[str, Placement] | None = None,
        desired_input_kwarg_layouts: Mapping[str, Placement] | None = None, use_local_input: bool = False,
        output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True,
    ):  # fmt: skip
        super().__init__(desired_output_layouts, desired_input_kwarg_layouts, input_kwarg_layouts)
        self.input_layouts, self._output_parts = input_layouts, output_layouts
        self.desired_input_layouts, self.use_local_input = desired_input_layouts, use_local_input
        self.output_layouts, self.use_local_output = desired_output_layouts, use_local_output


def parallelize_module(
    module: Module, device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | Mapping[str, ParallelStyle] | None = None, *, src_data_rank: int | None = 0,
) -> Module:  # fmt: skip
    """Parallelize `module` by one style, or submodules by the styles of a plan. Returns it.

    The names of a plan may hold wildcards for parts of a path: "layers.*.attn.q". Raises ValueError for a mesh of
    several dims, and without one; NotImplementedError for a style that does not fit a module. Names that fit no module
    are left out with a warning, as in PyTorch.
    """
    if device_mesh is None:
        raise ValueError("parallelize_module: pass device_mesh=; there is no current mesh")
    if device_mesh.ndim != 1:
        raise ValueError(
            "`placements` must have the same length as `device_mesh.ndim`! Found placements length: 1, and "
            f"device_mesh.ndim: {device_mesh.ndim}."
        )
    if parallelize_plan is None:
        _warn("No parallelize_plan is provided and auto-parallel is not supported at the moment, so this "
              "parallelize_module call will do nothing.")  # fmt: skip
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        return parallelize_plan._apply(module, device_mesh)
    if not isinstance(parallelize_plan, Mapping):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for pattern, style in parallelize_plan.items():
        if not pattern:
            raise ValueError("Expect module path to be non-empty, but got empty string!")
        steps = pattern.split(".")
        found = [m for name, m in module.named_modules() if name and _fits(name.split("."), steps)]
        if not found:
            _warn(f"Parallelize plan key '{pattern}' could not be resolved: no submodule matching")
        for submodule in found:
            style._apply(submodule, device_mesh)
    return module


def _fits(path: list[str], pattern: list[str]) -> bool:
    return len(path) == len(pattern) and all(map(fnmatch, path, pattern))


def _place(module: Module, mesh: DeviceMesh, dims: Mapping[str, int | None]) -> None:
    for name, dim in dims.items():
        parameter = module.get_parameter(name) if getattr(module, name.partition(".")[0], None) is not None else None
        if parameter is not None:
            distribute_parameter(parameter, mesh, [Replicate() if dim is None else Shard(dim)])


def _several(layouts: Any) -> tuple[Any, ...]:
    return () if layouts is None else tuple(layouts) if isinstance(layouts, (tuple, list)) else (layouts,)


def _laid(value: Any, layout: Placement | None, part: Placement | None, mesh: DeviceMesh, local: bool) -> Any:
    """A value on the devices of the mesh; if wanted so, and if it is whole on all or they are of several processes, a
    plain tensor. part: how a plain tensor is one, between processes; None: as the layout says."""
    if layout is None or not isinstance(value, Tensor):
        return value
    if mesh._numbers is not None and not is_distributed(value):
        value = DTensor.from_local(value, mesh, [part or layout])
    found: Any = distributed(value, mesh, checked([layout], 1, value.ndim))
    if local and mesh._numbers is not None:
        return found.to_local()
    return found.full_tensor() if local and all(p.is_replicate() for p in found.placements) else found


def _held(value: Any, wish: Placement | None, part: Placement | None, mesh: DeviceMesh) -> Any:
    """A value that is to lie as wished on the mesh axis. Its other dims are left to the compiler; of a replicated one,
    which no device may have a part of, the first, that of the batch."""
    if wish is None or not isinstance(value, Tensor):
        return value
    axis = mesh.mesh_dim_names[0] if mesh.mesh_dim_names else 0
    spec: list[Any] = [None if d == 0 or isinstance(wish, Shard) else () for d in range(value.ndim)]
    if isinstance(wish, Shard):
        spec[wish.dim] = (axis,)
    return E.shard(value, spec=tuple(spec))


def _warn(message: str) -> None:
    import warnings

    warnings.warn(message, stacklevel=3)
