"""Capture: an honest Python program becomes a graph."""

from graphc.capture.sources import (
    Argument,
    ArgumentGuard,
    Captured,
    Computed,
    Decision,
    Draw,
    Effect,
    Given,
    GradOf,
    Guard,
    History,
    LeafFlag,
    MemoryOf,
    PastOf,
    Reached,
    Returned,
    Source,
    ViewOf,
)
from graphc.capture.trace import Program, capture, trace
from graphc.capture.tracer import Tracer

__all__ = [
    "Argument",
    "ArgumentGuard",
    "Captured",
    "Computed",
    "Decision",
    "Draw",
    "Effect",
    "Given",
    "GradOf",
    "Guard",
    "History",
    "LeafFlag",
    "MemoryOf",
    "PastOf",
    "Program",
    "Reached",
    "Returned",
    "Source",
    "Tracer",
    "ViewOf",
    "capture",
    "trace",
]
