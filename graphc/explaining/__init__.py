"""What the optimizer did, step by step and region by region, and what it left as it was."""

from graphc.explaining.explanation import Explanation, explain
from graphc.explaining.steps import Step, steps

__all__ = ["Explanation", "Step", "explain", "steps"]
