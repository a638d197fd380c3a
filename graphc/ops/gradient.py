"""Running gradient rules: the same few lines serve the tape, differentiable gradients and the graph transform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.ops.movement import sum_to
from graphc.ops.spec import Op


def rule_values(
    op: Op, wanted: set[str], arrays: Sequence[Any], result: Any, params: Mapping[str, Any]
) -> dict[str, Any]:
    """The values of the names that gradient rules ask for, from one call's operands and result."""
    values: dict[str, Any] = {}
    for name in wanted:
        if name in ("g", "position"):
            continue
        if name == "r":
            values[name] = result
        elif name in params:
            values[name] = params[name]
        else:
            base, what = (name, None) if name in op.args else name.rsplit("_", 1)
            k = op.args.index(base)
            picked = list(arrays[k:]) if op.variadic and k == len(op.args) - 1 else arrays[k]
            if what is None:
                values[name] = picked
            else:
                values[name] = [getattr(a, what) for a in picked] if isinstance(picked, list) else getattr(picked, what)
    return values


def share(language: Any, op: Op, index: int, g: Any, values: Mapping[str, Any], shape: tuple[int, ...] | None) -> Any:
    """What operand number `index` of `op` gets of the cotangent `g`, by the op's rule, in any op language.

    `shape` is the operand's, if it may have been broadcast.
    """
    vjp = op.vjp[op.arg_of(index)]
    position = index - (len(op.args) - 1)
    arguments = [g if n == "g" else position if n == "position" else values[n] for n in vjp.names]
    d = vjp.fn(language, *arguments)
    return d if shape is None or d.shape == shape else sum_to(language, d, shape)
