"""What to say where the shape of a result depends on values that a graph does not have, and the form that works."""

from __future__ import annotations

import ast
import linecache
from types import FrameType
from typing import NamedTuple

from graphc import errors
from graphc.capture.location import span_of, user_frame, user_line
from graphc.capture.suggesting import Span, operands, rewritten

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
    """The user's line that asks for such a result, and where the expression stands in its file, if that is known."""

    where: str
    file: str
    span: Span | None


def asked_here() -> Asked:
    """Where the user's program is now."""
    frame = user_frame()
    return Asked(user_line(), "", None) if frame is None else _asked_in(frame)


def _asked_in(frame: FrameType) -> Asked:
    return Asked(user_line(), frame.f_code.co_filename, span_of(frame))


def counted_refusal(purpose: str, asked: Asked) -> str:
    """The message for `purpose`, whose result has a shape that the values decide, with the user's line rewritten."""
    expression = _expression(asked)
    try:
        x, mask = operands(ast.parse(expression, mode="eval").body)
    except SyntaxError:
        x, mask = "", ""
    return errors.SHAPE_OF_VALUES.format(
        what=purpose, used=asked.where, line=f"\n  in: {expression}" if expression else "",
        form=_FORMS.get(purpose, _ELSE).format(x=x or "x", mask=mask or "mask"), rewritten=_shown(asked, purpose),
    )  # fmt: skip


def rewritten_branch() -> str:
    """For a message about a branch on a value: the user's line as a choice in the graph."""
    return _shown(asked_here(), "truth")


def _shown(asked: Asked, purpose: str) -> str:
    text = rewritten(asked.file, asked.span, purpose)
    return f"\n    {text}" if text else ""


def _expression(asked: Asked) -> str:
    """The source of the expression, if that is known and stands in one line."""
    if asked.span is None or asked.span[0] != asked.span[1]:
        return ""
    line, _, start, stop = asked.span
    return linecache.getline(asked.file, line).encode()[start:stop].decode(errors="replace")
