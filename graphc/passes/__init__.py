"""Passes: pure functions from graph to graph, and the pipeline that runs them."""

from graphc.passes.pipeline import Record, explain, optimize, pipeline, rules_for

__all__ = ["Record", "explain", "optimize", "pipeline", "rules_for"]
