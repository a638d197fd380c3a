"""PyTorch as a witness, where it is installed (`pip install 'graphc[torch]'`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def torch_or_skip() -> Any:
    """The real torch. Skips the test where it is not installed."""
    return pytest.importorskip("torch")


def torch_dtype(dtype: np.dtype) -> Any:
    """PyTorch's dtype for a NumPy dtype."""
    return getattr(torch_or_skip(), dtype.name)
