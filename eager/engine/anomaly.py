"""Anomaly mode: nodes that know where in the user's program they were recorded."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from eager.core import state, tape
from graphc.ops.rules import torch_name

_HERE = os.path.dirname(os.path.dirname(__file__)) + os.sep


class Traced(list[Any]):
    """A node recorded in anomaly mode: where in the user's program, and checksums of what it saved."""

    __slots__ = ("checksums", "stack")


def traced(node: tape.Node) -> tape.Node:
    """`node`, just recorded, with what anomaly mode wants to know of it."""
    result = Traced(node)
    result.stack = user_stack()
    result.checksums = [(array, _checksum(array)) for array in tape.arrays_in(node[tape.SAVED])]
    return result


def user_stack() -> str:
    """The stack of the user's program, as a traceback shows it."""
    import traceback

    frames = [f for f in traceback.extract_stack() if not _is_ours(f.filename)]
    return "".join(traceback.format_list(frames))


def _is_ours(filename: str) -> bool:
    return filename.startswith((_HERE, "<generated "))


def _checksum(array: np.ndarray) -> int:
    import zlib  # here: `import eager` stays light

    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")


class explained:
    """Context: in anomaly mode, an error in the gradient of `node` comes with the place of its forward call."""

    def __init__(self, node: tape.Node):
        self.node = node

    def __enter__(self) -> None:
        if self.node.__class__ is Traced:
            for array, checksum in self.node.checksums:
                if checksum != _checksum(array):
                    raise RuntimeError(
                        "one of the variables needed for gradient computation has been modified without autograd's "
                        f"knowledge: [torch.{torch_name(array.dtype)}Tensor {list(array.shape)}], saved by "
                        f"{tape.name_of(self.node)}. Its memory was written through .data or through a NumPy array "
                        "that shares it (from_numpy(), numpy()). Remedy: write to a clone(), or after backward()."
                    )

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is not None and state.anomaly.enabled:
            import warnings

            name = tape.name_of(self.node)
            if self.node.__class__ is Traced:
                text = f"Error detected in {name}. Traceback of forward call that caused the error:\n{self.node.stack}"
            else:
                text = (
                    f"Error detected in {name}. No forward pass information available. Enable detect anomaly during "
                    "forward pass for more information."
                )
            warnings.warn(text, UserWarning, stacklevel=2)
