"""Gradients of graphs, as graphs."""

from graphc.autodiff.reverse import gradients, pullback

__all__ = ["gradients", "pullback"]
