"""Rewriting graphs by tables of equations."""

from graphc.rewrite.driver import Firing, RuleIndex, changed, rewrite
from graphc.rewrite.rule import ASSUMES, EXACT, REASSOCIATES, Licence, RewriteRule, scalar_value

__all__ = [
    "ASSUMES", "EXACT", "REASSOCIATES", "Firing", "Licence", "RewriteRule", "RuleIndex", "changed", "rewrite", "scalar_value",
]  # fmt: skip
