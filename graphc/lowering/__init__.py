"""Lowering: a graph becomes a JAX function, compiled by XLA. The one importer of jax."""

from graphc.lowering import loading  # noqa: F401  (JAX, before any other module loads it)
from graphc.lowering.executable import ELSEWHERE, Executable, block, lower
from graphc.lowering.host_memory import ALIGNMENT, alias, aligned, release

__all__ = ["ALIGNMENT", "ELSEWHERE", "Executable", "alias", "aligned", "block", "lower", "release"]
