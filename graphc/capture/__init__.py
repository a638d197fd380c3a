"""Capture: an honest Python program becomes a graph."""

from graphc.capture.program import Effects, Program
from graphc.capture.sources import Argument, Captured, Draw, Effect, GradOf, History, MemoryOf, Source
from graphc.capture.trace import capture, trace

__all__ = ["Argument", "Captured", "Draw", "Effect", "Effects", "GradOf", "History", "MemoryOf", "Program", "Source",
           "capture", "trace"]  # fmt: skip
