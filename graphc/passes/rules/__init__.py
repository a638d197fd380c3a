"""The tables of rewrite rules, in the order in which they are tried."""

from graphc.passes.rules import algebra, linalg, movement, stability

ALL = (*algebra.RULES, *movement.RULES, *stability.RULES, *linalg.RULES)

__all__ = ["ALL"]
