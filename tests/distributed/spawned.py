"""What `spawn` runs: in a module of its own, which loads nothing."""

import os


def fail(index: int, how: str) -> None:
    """Process 1 fails as it is told to."""
    if index == 1 and how == "raise":
        raise KeyError("gone")
    if index == 1:
        os._exit(4)
