"""The graph: Node, Graph, Builder; text, checker, drawing."""

from graphc.ir.builder import Builder, Language, Symbol
from graphc.ir.graph import INPUT, Graph, Node, Ref, fill, map_refs, refs_of, rename

__all__ = ["INPUT", "Builder", "Graph", "Language", "Node", "Ref", "Symbol", "fill", "map_refs", "refs_of", "rename"]
