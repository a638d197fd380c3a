"""Measured times of statements, and tables of them. As `torch.utils.benchmark`."""

from eager.utils.benchmark.compare import Colorize, Compare
from eager.utils.benchmark.measurement import Measurement, TaskSpec, select_unit, trim_sigfig, unit_to_english
from eager.utils.benchmark.timer import Language, Timer, timer

__all__ = [
    "Colorize", "Compare", "Language", "Measurement", "TaskSpec", "Timer", "select_unit", "timer", "trim_sigfig",
    "unit_to_english",
]  # fmt: skip
