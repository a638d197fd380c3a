"""`torch.__config__`: what computes here."""

from __future__ import annotations

import platform

import numpy as np

from eager.surface.runtime import get_num_interop_threads, get_num_threads


def show() -> str:
    """The libraries that compute, as a text."""
    return f"eager on NumPy {np.__version__}, Python {platform.python_version()}"


def parallel_info() -> str:
    """How many threads compute, as a text."""
    return f"Linear algebra: {get_num_threads()} threads\nOperations side by side: {get_num_interop_threads()}\n"
