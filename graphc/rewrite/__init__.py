"""Rewriting graphs by tables of equations."""

from graphc.rewrite.driver import Firing, RuleIndex, changed, rewrite
from graphc.rewrite.rule import ASSUMES, EXACT, REASSOCIATES, Licence, RewriteRule, number, scalar_value

__all__ = [
    "ASSUMES",
    "EXACT",
    "REASSOCIATES",
    "Firing",
    "Licence",
    "RewriteRule",
    "RuleIndex",
    "changed",
    "number",
    "rewrite",
    "scalar_value",
]
