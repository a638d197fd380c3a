"""Rewriting graphs by tables of equations."""

from graphc.rewrite.driver import Firing, by_root, changed, rewrite
from graphc.rewrite.rule import ASSUMES, EXACT, REASSOCIATES, Licence, RewriteRule, number, scalar_value

__all__ = [
    "ASSUMES",
    "EXACT",
    "REASSOCIATES",
    "Firing",
    "Licence",
    "RewriteRule",
    "by_root",
    "changed",
    "number",
    "rewrite",
    "scalar_value",
]
