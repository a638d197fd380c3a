"""Capture: an honest Python program becomes a graph."""

from graphc.capture.trace import Program, capture, trace
from graphc.capture.tracer import Argument, Captured, Draw, Effect, GradOf, Guard, History, Source, Tracer

__all__ = [
    "Argument",
    "Captured",
    "Draw",
    "Effect",
    "GradOf",
    "Guard",
    "History",
    "Program",
    "Source",
    "Tracer",
    "capture",
    "trace",
]
