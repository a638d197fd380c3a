"""A traced graph as TensorFlow's GraphDef, which TensorBoard draws.

The graph is only looked at: `nodes` (by id, each with `op.name`, `inputs`, `params`, `aval` and `scope`) and `outputs`,
after `opened()` has made the graphs inside it part of it.
"""

from __future__ import annotations

from typing import Any

from eager.utils.tensorboard.summaries import message

# NumPy dtype -> name in TensorFlow's enumeration
TYPES = {
    "float16": "DT_HALF", "float32": "DT_FLOAT", "float64": "DT_DOUBLE", "bfloat16": "DT_BFLOAT16",
    "complex64": "DT_COMPLEX64", "complex128": "DT_COMPLEX128", "bool": "DT_BOOL", "uint8": "DT_UINT8",
    "int8": "DT_INT8", "int16": "DT_INT16", "int32": "DT_INT32", "int64": "DT_INT64",
}  # fmt: skip


def node_names(graph: Any) -> dict[int, str]:
    """A path for each node: inputs by their own name, "0/weight"; operations by scope, op and id, "0/addmm_4"."""
    names: dict[int, str] = {}
    for id, node in graph.nodes.items():
        if node.op.name == "input" and not node.inputs:
            names[id] = node.params["name"].replace(".", "/")
        else:
            scope = f"{node.scope.replace('.', '/').replace(' ', '_')}/" if node.scope else ""
            names[id] = f"{scope}{node.op.name}_{id}"
    return names


def graph_def(graph: Any) -> Any:
    """The GraphDef of `graph`: a node for each of its nodes, and one "output" for each value that it returns.

    What a loop or a switch runs is a group.
    """
    graph = graph.opened().graph
    names = node_names(graph)
    made = message("GraphDef")(versions=message("VersionDef")(producer=22))
    for id, node in graph.nodes.items():
        made.node.append(_node(names[id], node, [names[operand] for operand in node.inputs]))
    for i, id in enumerate(graph.outputs):
        made.node.append(message("NodeDef")(name=f"output_{i}", op="output", input=[names[id]]))
    return made


def _node(name: str, node: Any, inputs: list[str]) -> Any:
    value = message("AttrValue")
    shape = message("TensorShapeProto")
    dims = shape(dim=[shape.Dim(size=size) for size in node.aval.shape])
    attributes = {"_output_shapes": value(list=value.ListValue(shape=[dims]))}
    kind = TYPES.get(node.aval.dtype.name)
    if kind is not None:
        attributes["dtype"] = value(type=kind)
    text = ", ".join(f"{key}={content!r}" for key, content in node.params.items() if key != "name")
    if text:
        attributes["params"] = value(s=text.encode())
    if node.where:
        attributes["where"] = value(s=node.where.encode())
    return message("NodeDef")(name=name, op=node.op.name, input=inputs, attr=attributes)
