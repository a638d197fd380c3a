"""Passes: pure functions from graph to graph, and the pipeline that runs them."""

from graphc.passes.pipeline import Record, default_passes, mechanisms, optimize, rules_for, settings_for, simplify
from graphc.passes.settings import Settings

__all__ = [
    "Record", "Settings", "default_passes", "mechanisms", "optimize", "rules_for", "settings_for", "simplify",
]  # fmt: skip
