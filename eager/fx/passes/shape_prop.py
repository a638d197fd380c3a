"""The shapes of the values of a graph, noted at its nodes. As `torch.fx.passes.shape_prop`."""

from __future__ import annotations

from typing import Any, NamedTuple

from eager.core import layouts
from eager.core.dtypes import Size, dtype
from eager.core.layouts import memory_format
from eager.core.tensor import Tensor
from eager.fx.interpreter import Interpreter
from eager.fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]

NO_FAKES = "ShapeProp(fake_mode=...): there are no fake tensors here; tensors may be on `meta`"
WHILE = "ShapeProp error for: node={} with meta={}"


class TensorMetadata(NamedTuple):
    """What is noted of a tensor."""

    shape: Size
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """What is noted of `result`; with the first memory format in which it is contiguous."""
    t: Any = result
    formats = (layouts.contiguous_format, layouts.channels_last, layouts.channels_last_3d)
    found = None
    if include_contiguity:
        ranks = {layouts.channels_last: 4, layouts.channels_last_3d: 5}
        fitting = (each for each in formats if ranks.get(each, t.dim()) == t.dim())
        found = next((each for each in fitting if t.is_contiguous(memory_format=each)), None)
    return TensorMetadata(t.shape, t.dtype, t.requires_grad, t.stride(), found, False, {})


class ShapeProp(Interpreter):
    """Runs a graph, and notes at each node `meta["tensor_meta"]`, of each tensor of its value, and `meta["type"]`.

    fake_mode: PyTorch's, which is not here; None.
    """

    def __init__(self, gm: Any, fake_mode: Any = None):
        super().__init__(gm)
        if fake_mode is not None:
            raise NotImplementedError(NO_FAKES)

    def run_node(self, n: Node) -> Any:
        """The value of the node, noted."""
        try:
            result = super().run_node(n)
        except Exception as error:
            raise RuntimeError(WHILE.format(n.format_node(), n.meta)) from error
        found: list[TensorMetadata] = []

        def note(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            found.append(_extract_tensor_metadata(value))
            return found[-1]

        noted = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = noted
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph with these arguments. Returns its result."""
        return super().run(*args)
