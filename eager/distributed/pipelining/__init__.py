"""Stages of a model that work on different parts of a batch at once. As `torch.distributed.pipelining`, in one process.

All stages are in this process. In eager mode they run one after the other. On a mesh of devices (`pipeline(...,
mesh=)`, `graphc.compile(..., mesh=)`) each stage is on its own devices: see `eager.distributed.pipelining.shifting`.
"""

from eager.core.missing import explain
from eager.distributed.pipelining.pipe import Pipe, SplitPoint, pipeline
from eager.distributed.pipelining.schedules import Schedule1F1B, ScheduleGPipe
from eager.distributed.pipelining.stage import PipelineStage, build_stage

__all__ = ["Pipe", "PipelineStage", "Schedule1F1B", "ScheduleGPipe", "SplitPoint", "build_stage", "pipeline"]
explain(__name__)
