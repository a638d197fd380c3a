"""Stages of a model that work on different parts of a batch at once. As `torch.distributed.pipelining`.

Between processes each has one stage (`between`). In one that is alone they run one after the other in eager mode; on a
mesh of its devices (`pipeline(..., mesh=)`, `graphc.compile(..., mesh=)`) each is on its own: see `shifting`.
"""

from eager.distributed.pipelining.pipe import Pipe, SplitPoint, pipeline
from eager.distributed.pipelining.schedules import Schedule1F1B, ScheduleGPipe
from eager.distributed.pipelining.stage import PipelineStage, build_stage

__all__ = ["Pipe", "PipelineStage", "Schedule1F1B", "ScheduleGPipe", "SplitPoint", "build_stage", "pipeline"]
