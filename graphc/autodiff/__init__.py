"""Gradients of graphs, as graphs."""

from graphc.autodiff import checkpoints, control  # noqa: F401  (rules)
from graphc.autodiff.reverse import Custom, gradients, pullback

__all__ = ["Custom", "gradients", "pullback"]
