"""Schedules of the learning rate. As `torch.optim.lr_scheduler`."""

from eager.optim.lr_scheduler.base import LRScheduler
from eager.optim.lr_scheduler.composed import ChainedScheduler, SequentialLR
from eager.optim.lr_scheduler.cycles import CyclicLR, OneCycleLR
from eager.optim.lr_scheduler.decay import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from eager.optim.lr_scheduler.plateau import ReduceLROnPlateau


class _LRScheduler(LRScheduler):
    """The old name, which programs still subclass."""


__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
