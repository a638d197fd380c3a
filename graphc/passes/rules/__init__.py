"""The tables of rewrite rules, in the order in which they are tried."""

from graphc.passes.rules import algebra, fractions, linalg, movement, scattering, signs, stability

TABLES = algebra, signs, fractions, movement, stability, scattering, linalg
ALL = tuple(rule for table in TABLES for rule in table.RULES)

__all__ = ["ALL"]
