"""Stages of a model that work on different parts of a batch at once. As `torch.distributed.pipelining`.

Between processes each has one stage (`between`), or several (`interleaved`). In one that is alone they run one after
the other in eager mode; on a mesh of its devices (`pipeline(..., mesh=)`, `graphc.compile(..., mesh=)`) each is on its
own: see `shifting`.
"""

from eager.distributed.pipelining.interleaved import (
    ScheduleDualPipeV,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from eager.distributed.pipelining.pipe import Pipe, SplitPoint, pipeline
from eager.distributed.pipelining.schedules import Schedule1F1B, ScheduleGPipe
from eager.distributed.pipelining.stage import PipelineStage, build_stage

__all__ = [
    "Pipe", "PipelineStage", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe", "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "SplitPoint", "build_stage",
    "pipeline",
]  # fmt: skip
