"""What to say where the shape of a result depends on values that a graph does not have, and the form that works."""

from __future__ import annotations

import ast
import linecache
from types import FrameType
from typing import NamedTuple

from graphc import errors
from graphc.capture.location import span_of, user_frame, user_line

# by what is called: the form of known shape. {x} and {mask} are the operands of the user's expression
_FORMS = {
    "mask": "torch.where({mask}, {x}, 0), or x.masked_fill(mask, value), which keep all elements",
    "masked_select": "torch.where({mask}, {x}, 0), or x.masked_fill(mask, value), which keep all elements",
    "nonzero": "torch.nonzero_static({x}, size=n), or the mask itself in torch.where(mask, a, b)",
    "repeat_interleave": "the argument output_size",
    "one_hot": "the argument num_classes",
    "bincount": "torch.zeros(n, dtype=torch.int64).index_add(0, x, torch.ones_like(x))",
    "unique": "torch.sort, or torch.bincount for small integers, outside of the graph",
    "unique_consecutive": "a mask of the changes: x[1:] != x[:-1]",
    "histc": "the arguments min and max",
    "histogram": "the argument range",
}
_ELSE = "operations whose results have a known shape, as torch.where(mask, a, b)"


class Asked(NamedTuple):
    """The user's line that asks for such a result, and the source of the expression in it, if that is known."""

    where: str
    expression: str


def asked_here() -> Asked:
    """Where the user's program is now."""
    frame = user_frame()
    return Asked(user_line(), "" if frame is None else _expression(frame))


def counted_refusal(purpose: str, asked: Asked) -> str:
    """The message for `purpose`, whose result has a shape that the values decide, with the user's line rewritten."""
    form = _FORMS.get(purpose, _ELSE)
    x, mask = _operands(asked.expression)
    return errors.SHAPE_OF_VALUES.format(
        what=purpose, used=asked.where, line=f"\n  in: {asked.expression}" if asked.expression else "",
        form=form.format(x=x or "x", mask=mask or "mask"),
    )  # fmt: skip


def _expression(frame: FrameType) -> str:
    """The source of the expression that the frame is evaluating, if that is known and stands in one line."""
    at = span_of(frame)
    if at is None or at[0] != at[1]:
        return ""
    line, _, start, stop = at
    source = linecache.getline(frame.f_code.co_filename, line)
    return source.encode()[start:stop].decode(errors="replace")


def _operands(expression: str) -> tuple[str, str]:
    """The source of x and of the mask in `x[mask]`, `x.f(mask)` or `torch.f(x, mask)`; "" for what is not there."""
    try:
        tree = ast.parse(expression, mode="eval").body
    except SyntaxError:
        return "", ""
    if isinstance(tree, ast.Subscript):
        plain = not isinstance(tree.slice, ast.Tuple)
        return ast.unparse(tree.value), ast.unparse(tree.slice) if plain else ""
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute):
        owner = tree.func.value
        of_module = isinstance(owner, ast.Name) and owner.id in ("torch", "eager", "F")
        given = [*tree.args] if of_module else [owner, *tree.args]
        texts = [ast.unparse(a) for a in given[:2]]
        return (*texts, "", "")[:2]  # type: ignore[return-value]
    return "", ""
