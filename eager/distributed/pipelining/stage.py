"""PipelineStage: one stage of a model, for a schedule."""

from __future__ import annotations

from typing import Any, final

from eager.nn import Module


@final
class PipelineStage:
    """One of `num_stages` stages. As `torch.distributed.pipelining.PipelineStage`.

    group  the processes that have a stage each; None: all. One that is alone has all stages
    device, input_args, output_args, dw_builder  change nothing
    pipe   the `Pipe` that this is of, which schedules ask for the other stages

    Raises ValueError for an index that is too large.
    """

    def __init__(
        self, submodule: Module, stage_index: int, num_stages: int, device: Any, input_args: Any = None,
        output_args: Any = None, group: Any = None, dw_builder: Any = None, *, pipe: Any = None,
    ):  # fmt: skip
        if stage_index >= num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        self.submod, self.stage_index, self.num_stages, self.device = submodule, stage_index, num_stages, device
        self.pipe, self.group = pipe, group

    @property
    def is_first(self) -> bool:
        """Whether this takes the arguments of the model."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether this makes its result."""
        return self.stage_index == self.num_stages - 1


def build_stage(
    stage_module: Module, stage_index: int, pipe_info: Any, device: Any, group: Any = None
) -> PipelineStage:
    """A stage of a `Pipe`, which is its `pipe_info` here. As `torch.distributed.pipelining.build_stage`."""
    return PipelineStage(stage_module, stage_index, pipe_info.num_stages, device, group=group, pipe=pipe_info)
