"""Rewriting graphs by tables of equations."""

from graphc.rewrite.driver import Firing, changed, rewrite
from graphc.rewrite.index import RuleIndex
from graphc.rewrite.rule import ASSUMES, EXACT, REASSOCIATES, Licence, RewriteRule, held_array, number, scalar_value

__all__ = [
    "ASSUMES", "EXACT", "REASSOCIATES", "Firing", "Licence", "RewriteRule", "RuleIndex", "changed", "held_array",
    "number", "rewrite", "scalar_value",
]  # fmt: skip
