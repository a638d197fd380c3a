"""TensorBoard's messages, imported when the first writer is made."""

from __future__ import annotations

from typing import Any

from graphc.errors import require

FEATURE, EXTRA = "torch.utils.tensorboard", "tensorboard"
# message -> module below tensorboard.compat.proto
MESSAGES = {
    **dict.fromkeys(("Event", "SessionLog"), "event_pb2"),
    **dict.fromkeys(("HistogramProto", "Summary", "SummaryMetadata"), "summary_pb2"),
    **dict.fromkeys(("TensorProto",), "tensor_pb2"),
    **dict.fromkeys(("TensorShapeProto",), "tensor_shape_pb2"),
    **dict.fromkeys(("GraphDef",), "graph_pb2"),
    **dict.fromkeys(("NodeDef",), "node_def_pb2"),
    **dict.fromkeys(("AttrValue",), "attr_value_pb2"),
    **dict.fromkeys(("VersionDef",), "versions_pb2"),
}


def message(name: str) -> Any:
    """The class of a message. Raises MissingExtraError if tensorboard is not installed."""
    return getattr(require(f"tensorboard.compat.proto.{MESSAGES[name]}", FEATURE, EXTRA), name)


def module(name: str) -> Any:
    """A module of tensorboard. Raises MissingExtraError if it is not installed."""
    return require(f"tensorboard.{name}", FEATURE, EXTRA)
