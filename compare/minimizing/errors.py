"""What minimizing raises."""

from __future__ import annotations


class MinimizeError(ValueError):
    """There is nothing to minimize, or no program that can be written as text shows the same."""
