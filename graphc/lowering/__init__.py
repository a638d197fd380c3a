"""Lowering: a graph becomes a JAX function, compiled by XLA. The one importer of jax."""

from graphc.lowering import cache  # noqa: F401  (tells JAX where to keep what it compiles)
from graphc.lowering.executable import Executable, block, lower

__all__ = ["Executable", "block", "lower"]
