"""The tables of rewrite rules, in the order in which they are tried."""

from graphc.passes.rules import algebra, known, linalg, movement, order, scattering, stability

ALL = (
    *algebra.RULES,
    *known.RULES,
    *movement.RULES,
    *order.RULES,
    *stability.RULES,
    *scattering.RULES,
    *linalg.RULES,
)

__all__ = ["ALL"]
