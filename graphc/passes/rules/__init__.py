"""The tables of rewrite rules, in the order in which they are tried."""

from graphc.passes.rules import (
    algebra,
    cumulation,
    divisions,
    known,
    linalg,
    movement,
    order,
    scattering,
    signs,
    stability,
)

TABLES = known, algebra, signs, divisions, movement, order, stability, scattering, cumulation, linalg
ALL = tuple(rule for table in TABLES for rule in table.RULES)

__all__ = ["ALL"]
