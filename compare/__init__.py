"""The equivalence and benchmark harness: do the modes agree, where do they part, and what does each cost."""

from compare.benchmark import BenchReport, bench
from compare.equivalence import check
from compare.fuzzing import FuzzReport, fuzz
from compare.modes import register_mode
from compare.report import Report

__all__ = ["BenchReport", "FuzzReport", "Report", "bench", "check", "fuzz", "register_mode"]
