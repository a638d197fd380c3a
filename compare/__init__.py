"""The equivalence and benchmark harness: do the modes agree, where do they part, and what does each cost."""

from compare.benchmark import BenchReport, bench
from compare.equivalence import check
from compare.fuzzing import FuzzReport, fuzz
from compare.minimizing import Minimized, MinimizeError, minimize
from compare.modes import register_mode
from compare.report import Report

__all__ = [
    "BenchReport", "FuzzReport", "MinimizeError", "Minimized", "Report", "bench", "check", "fuzz", "minimize",
    "register_mode",
]  # fmt: skip
