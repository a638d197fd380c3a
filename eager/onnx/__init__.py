"""`torch.onnx`, as far as models and libraries name it: nothing is written for ONNX, `graphc.export` writes programs.

What libraries register for the exporter when they are imported is accepted, and means nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NoReturn

__all__ = [
    "dynamo_export", "export", "is_in_onnx_export", "register_custom_op_symbolic", "unregister_custom_op_symbolic",
]  # fmt: skip

NO_ONNX = (
    "torch.onnx.{}: nothing is written for ONNX here. Remedy: graphc.export(graph) writes a portable program, "
    "graphc.stablehlo(graph) its text; torch.save(model.state_dict(), path) gives the weights to PyTorch's exporter."
)


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: nothing is written for ONNX."""
    raise NotImplementedError(NO_ONNX.format("export"))


def dynamo_export(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: nothing is written for ONNX."""
    raise NotImplementedError(NO_ONNX.format("dynamo_export"))


def is_in_onnx_export() -> bool:
    """False: models ask it to take a way that ONNX has."""
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int) -> None:
    """Does nothing: there is no exporter that would call `symbolic_fn`."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Does nothing."""


def parse_args(*descriptors: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that keeps the function. As `torch.onnx.symbolic_helper.parse_args`."""
    return lambda fn: fn


class TrainingMode(enum.Enum):
    """What the exporter does with layers like dropout, in PyTorch."""

    EVAL, PRESERVE, TRAINING = range(3)


class OperatorExportTypes(enum.Enum):
    """How the exporter writes operations, in PyTorch."""

    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK, ONNX_FALLTHROUGH = range(4)
