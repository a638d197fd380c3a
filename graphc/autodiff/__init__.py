"""Gradients of graphs, as graphs."""

from graphc.autodiff.reverse import Custom, gradients, pullback

__all__ = ["Custom", "gradients", "pullback"]
