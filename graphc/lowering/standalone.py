"""A graph as a Python file that needs JAX and NumPy (and SciPy, where XLA lacks a function), and not graphc."""

from __future__ import annotations

import builtins
import re
from types import SimpleNamespace
from typing import Any

from graphc.errors import GraphError
from graphc.ir.graph import Graph, Ref
from graphc.ir.text import names_of
from graphc.lowering.bundle import Bundle
from graphc.lowering.source import Source
from graphc.lowering.stages import is_wide
from graphc.ops.aval import Aval
from graphc.ops.spec import Trait

PROGRAM, COMPILED = "program", "compiled"
_LOCAL = ("outputs", "failure", "number", "error", "message", "jax", "jnp", "np")
_OWN = (PROGRAM, COMPILED, "INPUTS", "FAILURES", "bind", "ops", "checks", "special", "first_failure")

NOT_ALONE = (
    "{op} at {where} exchanges arrays with other processes, which a program that stands by itself does not know. "
    "Remedy: write the part between two exchanges"
)
NOT_STATIC = (
    "the result holds a {type}, which generated source cannot make.\n"
    "Remedy: return only tensors, numbers, strings, None, and tuples, named tuples, lists and dicts of them."
)

_HEAD = '''"""{name}: written by graphc.codegen. It needs JAX and NumPy{scipy}, and nothing of graphc.

{name}({names}) takes arrays of these types:
{signature}
`{program}` is the same as a function of jax.Arrays, to be used inside other JAX programs. It returns a flat
tuple{failure}.
"""

from __future__ import annotations

'''

_BIND = '''def bind(arrays):
    """The arguments as arrays of the shapes and dtypes that the program is made for."""
    bound = []
    for (name, shape, dtype), given in zip(INPUTS, arrays, strict=True):
        array = given if isinstance(given, jax.Array) else np.asarray(given)
        if array.shape != shape or array.dtype != dtype:
            wanted, got = f"{np.dtype(dtype)}{list(shape)}", f"{array.dtype}{list(array.shape)}"
            raise ValueError(f"argument '{name}' must be {wanted}, got {got}")
        bound.append(array)
    return bound
'''


def codegen(graph: Graph) -> str:
    """The source of a Python file that computes `graph` under JAX without graphc.

    It defines a function of the graph's name (with "_" behind it if the file needs that name itself), which takes NumPy
    or JAX arrays and returns the graph's result; run-time checks raise the errors that graphc raises, with the user's
    line. Everything that the program uses is in the file: kernels with all that they refer to, and constants. Raises
    GraphError if a kernel or the result has no source.

    >>> from graphc.ir import Graph
    >>> text = codegen(Graph.parse("def f(x: f32[3]):\\n    v1: f32[3] = tanh(x)\\n    return v1\\n"))
    >>> import numpy as np
    >>> scope = {}
    >>> exec(text, scope)
    >>> scope["f"](np.zeros(3, np.float32))
    Array([0., 0., 0.], dtype=float32)
    """
    graph.check()
    for node in graph.nodes.values():
        if node.op.traits & Trait.COMMUNICATES:
            raise GraphError(NOT_ALONE.format(op=node.op.name, where=node.where or "?"))
    source = Source(graph, PROGRAM)
    name, inputs = _entry_name(graph), zip(graph.input_names, graph.input_avals(), strict=True)
    bundle = Bundle((*_OWN, *source.scope, name))
    values = [
        _global(bundle, name, value) for name, value in source.scope.items() if re.search(rf"\b{name}\b", source.text)
    ]
    errors = [node.check.failure(node.params, node.where) for node in source.checked if node.check is not None]
    failures = [f"    ({bundle.name_of(type(error), 'error')}, {str(error)!r})," for error in errors]
    result = _result(bundle, graph.result, [f"outputs[{k}]" for k in range(len(graph.outputs))])
    lines = [
        *sorted({*bundle.imports, "import jax", "import jax.numpy as jnp", "import numpy as np"}),
        "",
        *(f"\n{definition}\n" for definition in bundle.definitions),
        *filter(None, values),
        "",
        "",
        source.text,
        "",
        f"{COMPILED} = jax.jit({PROGRAM}, keep_unused=True)",
        "INPUTS = [" + "".join(f"\n    {_row(*row)}," for row in inputs) + "\n]",
        *(["FAILURES = [", *failures, "]"] if failures else []),
        "",
        "",
        _BIND,
        "",
        *_entry(graph, bool(failures), result),
    ]
    head = _HEAD.format(
        name=name,
        program=PROGRAM,
        scipy=", and SciPy" if any("scipy" in line and "jax" not in line for line in lines) else "",
        names=", ".join(_entry_names(graph)),
        signature="".join(f"    {n}: {a}\n" for n, a in zip(_entry_names(graph), graph.input_avals(), strict=True)),
        failure=", with the number of the check that failed first, or -1, as the last" if failures else "",
    )
    return head + "\n".join(lines) + "\n"


def _entry_name(graph: Graph) -> str:
    reserved = graph.name in {*_OWN, *_LOCAL, "lax", *dir(builtins)}
    return f"{graph.name}_" if reserved else graph.name


def _row(name: str, aval: Aval) -> str:
    dtype = "jnp.bfloat16" if aval.dtype.name == "bfloat16" else f"np.{aval.dtype.name}"
    return f"({name!r}, {aval.shape}, np.dtype({dtype}))"


def _entry_names(graph: Graph) -> list[str]:
    names = names_of(graph, {*_OWN, *_LOCAL, *dir(builtins)}.__contains__)
    return [names[id] for id in graph.inputs]


def _entry(graph: Graph, checked: bool, result: str) -> list[str]:
    """The function that users call."""
    names = _entry_names(graph)
    arrays = f"[{', '.join(names)}]"
    lines = [
        f"def {_entry_name(graph)}({', '.join(names)}):",
        f"    with jax.enable_x64({is_wide(graph)}):",
        f"        outputs = {COMPILED}(*bind({arrays}))",
    ]
    if checked:
        lines += [
            "    *outputs, failure = outputs",
            "    if (number := failure.item()) >= 0:",
            "        error, message = FAILURES[number]",
            "        raise error(message)",
        ]
    return [*lines, "    jax.block_until_ready(outputs)", f"    return {result}", ""]


def _global(bundle: Bundle, name: str, value: Any) -> str:
    """The line that gives the program `value`, an object or a namespace of functions, under `name`."""
    if not isinstance(value, SimpleNamespace):
        written = bundle.name_of(value, name)
        return "" if written == name else f"{name} = {written}"
    members = [f"{key}={bundle.name_of(function, f'{name}_{key}')}" for key, function in vars(value).items()]
    bundle.imports["import types"] = None
    return f"{name} = types.SimpleNamespace({', '.join(members)})"


def _result(bundle: Bundle, result: Any, outputs: list[str]) -> str:
    """An expression for a graph's result; `outputs` are taken from the front."""
    if isinstance(result, Ref):
        return outputs.pop(0)
    if isinstance(result, dict):
        return "{" + ", ".join(f"{_static(bundle, k)}: {_result(bundle, v, outputs)}" for k, v in result.items()) + "}"
    if isinstance(result, (tuple, list)):
        parts = ", ".join([_result(bundle, part, outputs) for part in result])
        if isinstance(result, list):
            return f"[{parts}]"
        fields = getattr(result, "_fields", None)
        if fields is None:
            return f"({parts}{',' if len(result) == 1 else ''})"
        name = bundle.unique(type(result).__name__)
        bundle.imports["import collections"] = None
        bundle.definitions.append(f"{name} = collections.namedtuple({type(result).__name__!r}, {list(fields)!r})")
        return f"{name}({parts})"
    return _static(bundle, result)


def _static(bundle: Bundle, value: Any) -> str:
    try:
        return bundle.name_of(value, "value")
    except GraphError:
        raise GraphError(NOT_STATIC.format(type=type(value).__name__)) from None
