"""A graph as straight-line NumPy: source, memory planned ahead, and what is called like a program of XLA."""

from graphc.lowering.host.executable import HostExecutable
from graphc.lowering.host.source import unsuitable

__all__ = ["HostExecutable", "unsuitable"]
