"""Passes: pure functions from graph to graph, and the pipeline that runs them."""

from graphc.passes.pipeline import Record, default_passes, explain, optimize, rules_for, simplify

__all__ = ["Record", "default_passes", "explain", "optimize", "rules_for", "simplify"]
