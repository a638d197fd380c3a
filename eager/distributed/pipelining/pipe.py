"""`pipeline`: a model, split into stages."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, final

from eager.core.tensor import Tensor
from eager.distributed.device_mesh import DeviceMesh
from eager.distributed.pipelining.between import listed
from eager.distributed.pipelining.shifting import Stacked, alike, check
from eager.distributed.pipelining.stage import PipelineStage
from eager.distributed.pipelining.traced import NO_LAYER, NO_STAGE, split
from eager.nn import Module, Sequential

NOT_SEQUENTIAL = (
    "pipeline: on a mesh, models are split between the layers of nn.Sequential, and {name} is none. Remedy: make an "
    "nn.Sequential of its layers"
)
KEYWORDS = (
    "pipeline: mb_kwargs and split_policy are not supported. Remedy: give arguments by position, in mb_args, and name "
    "the layers to split at in split_spec"
)


class SplitPoint(enum.Enum):
    """Where a model is split: before or after a layer. As `torch.distributed.pipelining.SplitPoint`."""

    BEGINNING = 1
    END = 2


@final
class Pipe(Module):
    """A model in stages. As `torch.distributed.pipelining.Pipe`.

    parts                the stages: on a mesh the layers of each, with their names
    first, stages, last  on a mesh: the layers before the stages that are alike, those, and the layers after them. Else
                         all stages are in `stages`
    """

    def __init__(self, parts: Sequence[Any], mesh: DeviceMesh | None):
        super().__init__()
        self.num_stages = len(parts)
        self.mesh = mesh
        self.first, self.last = Sequential(), Sequential()
        self.stages: Any
        if mesh is None:
            self.stages = Sequential(*parts)
            return
        before, after = alike([[layer for _, layer in part] for part in parts])
        own = [[*part] for part in parts]
        first, own[0] = own[0][:before], own[0][before:]
        cut = len(own[-1]) - after
        own[-1], last = own[-1][:cut], own[-1][cut:]
        self.first = Sequential(*(layer for _, layer in first))
        self.stages = Stacked([Sequential(*(layer for _, layer in part)) for part in own], mesh)
        self.last = Sequential(*(layer for _, layer in last))
        self._names = [[name for name, _ in part] for part in (first, *own, last)]

    def get_stage_module(self, stage_idx: int) -> Module:
        """The layers of a stage. On a mesh, they take their parameters from those of all stages."""
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        if self.mesh is None:
            return self.stages[stage_idx]
        inside = (self.stages.stage(stage_idx),)
        before = (self.first,) if stage_idx == 0 else ()
        after = (self.last,) if stage_idx == self.num_stages - 1 else ()
        return Sequential(*before, *inside, *after)

    def build_stage(self, stage_index: int, device: Any, group: Any = None) -> PipelineStage:
        """A stage, for a schedule. `group`: see `PipelineStage`; `device` changes nothing here."""
        module = self.get_stage_module(stage_index)
        return PipelineStage(module, stage_index, self.num_stages, device, group=group, pipe=self)

    def forward(self, *args: Any) -> Any:
        """What the model computes: all stages, one after the other."""
        found: Any = args
        for k in range(self.num_stages):
            found = self.get_stage_module(k)(*listed(found))
        return found

    def unstacked(self, values: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        """`state_dict()`, or other values by its names (as moments of an optimizer), by the names of the model that was
        split."""
        found: dict[str, Tensor] = {}
        for name, value in (self.state_dict() if values is None else values).items():
            where, _, inside = name.partition(".")
            if self.mesh is None:  # a stage has the names of the model
                found[inside.partition(".")[2]] = value
            elif where != "stages":
                layer, _, rest = inside.partition(".")
                found[f"{self._names[0 if where == 'first' else -1][int(layer)]}.{rest}"] = value
            else:
                layer, _, rest = inside.removeprefix("template.").partition(".")
                for k in range(self.num_stages):
                    found[f"{self._names[k + 1][int(layer)]}.{rest}"] = value[k]
        return found


def pipeline(
    module: Module, mb_args: tuple[Any, ...], mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, SplitPoint] | None = None, split_policy: Callable[..., Any] | None = None, *,
    mesh: DeviceMesh | None = None,
) -> Pipe:  # fmt: skip
    """`module` in stages, split where `split_spec` says. As `torch.distributed.pipelining.pipeline`.

    module   without a mesh any whose calls torch.fx can trace, down to the layers of `split_spec`; on a mesh an
             nn.Sequential, or several in each other
    mb_args  what the module takes of one microbatch; other arguments are as by default
    mesh     of one axis, with a device for each stage, in a step that is compiled on a mesh with that axis. Not in
             PyTorch. The stages must be alike, but for layers at the beginning of the first (an embedding) and at the
             end of the last (a head), which run on all devices. The parameters of the stages become those of the
             `Pipe`, stacked along a first dim that is split over the mesh, so give an optimizer `pipe.parameters()`

    Raises ValueError for layers that are not there, and stages that are not alike; NotImplementedError for other
    modules on a mesh, keyword arguments and `split_policy`.
    """
    if mb_kwargs or split_policy is not None:
        raise NotImplementedError(KEYWORDS)
    if mesh is None:
        ends = {name: point is SplitPoint.END for name, point in (split_spec or {}).items()}
        return Pipe(split(module, ends, mb_args), None)
    if not isinstance(module, Sequential):
        raise NotImplementedError(NOT_SEQUENTIAL.format(name=type(module).__name__))
    if mesh.ndim != 1:
        raise ValueError(f"pipeline: expected a mesh of one axis, got {mesh}. Remedy: mesh['name of the axis']")
    check(module)
    layers = _layers(module, "")
    names = [name for name, _ in layers]
    cuts = {0, len(layers)}
    for name, point in (split_spec or {}).items():
        inside = [k for k, other in enumerate(names) if other == name or other.startswith(f"{name}.")]
        if not inside:
            raise ValueError(NO_LAYER.format(name=name, layers=", ".join(names)))
        cut = inside[0] if point is SplitPoint.BEGINNING else inside[-1] + 1
        if cut in cuts:
            raise ValueError(NO_STAGE.format(name=name))
        cuts.add(cut)
    if len(cuts) - 1 != mesh.size():
        raise ValueError(f"pipeline: {len(cuts) - 1} stages on a mesh of {mesh.size()} devices")
    return Pipe([layers[a:b] for a, b in pairwise(sorted(cuts))], mesh)


def _layers(module: Module, prefix: str) -> list[tuple[str, Module]]:
    """The layers of nested nn.Sequential, in their order, by name."""
    if type(module) is not Sequential and not (isinstance(module, Sequential) and not prefix):
        return [(prefix, module)]
    return [
        pair
        for name, child in module.named_children()
        for pair in _layers(child, f"{prefix}.{name}" if prefix else name)
    ]
