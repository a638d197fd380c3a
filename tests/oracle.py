"""PyTorch as a witness, where it is installed (`pip install 'graphc[torch]'`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def torch_or_skip() -> Any:
    """The real torch. Skips the test where it is not installed."""
    return pytest.importorskip("torch")


def torch_function(name: str) -> Any:
    """PyTorch's function for the op `name`. Skips the test if there is none."""
    torch = torch_or_skip()
    places = (torch, name), (torch.nn.functional, name), (torch.special, name.removeprefix("special_"))
    found = next((getattr(module, n) for module, n in places if hasattr(module, n)), None)
    return found or pytest.skip(f"PyTorch has no function '{name}'")


def torch_dtype(dtype: np.dtype) -> Any:
    """PyTorch's dtype for a NumPy dtype."""
    return getattr(torch_or_skip(), dtype.name)
