"""The user's line as it would have to be written for a graph, which an error shows.

It is made from the source: the expression is found by its place, and replaced in the statement around it.
"""

from __future__ import annotations

import ast
import copy
import functools
import linecache
from collections.abc import Callable
from typing import Any, final

Span = tuple[int, int, int, int]  # line, last line, column and end of an expression, in bytes as Python counts them

# what stands for an element that is not selected, by the reduction that follows
_NEUTRAL = {
    "sum": "0", "prod": "1", "max": "-torch.inf", "amax": "-torch.inf", "min": "torch.inf", "amin": "torch.inf",
    "any": "False", "all": "True", "count_nonzero": "0", "logsumexp": "-torch.inf",
}  # fmt: skip


def rewritten(file: str, span: Span | None, purpose: str) -> str:
    """The statement around the expression at `span` of a file, in a form whose shapes and branches no value decides.
    "" if the source is not there, or no such form is known.

    purpose  "mask", "nonzero", ... as the engine calls what needs a count; "truth" for a branch
    """
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return ""
    found = None if span is None else _Place.of(tree, span)
    write = _FORMS.get(purpose)
    return "" if found is None or write is None else write(found) or ""


@final
class _Place:
    """An expression, and what stands around it, the statement first."""

    def __init__(self, expression: ast.expr, around: list[ast.AST], block: list[ast.stmt]):
        self.expression, self.around, self.block = expression, around, block

    @staticmethod
    def of(tree: ast.AST, span: Span) -> _Place | None:
        """The expression at `span`; the outermost, if several stand there."""
        todo: list[tuple[ast.AST, list[ast.AST], list[ast.stmt]]] = [(tree, [], [])]
        while todo:
            node, around, block = todo.pop()
            if isinstance(node, ast.expr) and _span(node) == span:
                return _Place(node, around, block)
            inside: list[ast.AST] = [node] if isinstance(node, ast.stmt) else [*around, node]
            for _, value in ast.iter_fields(node):
                children: list[Any] = value if isinstance(value, list) else [value]
                for child in children:
                    if isinstance(child, ast.stmt):
                        todo.append((child, [], children))
                    elif isinstance(child, ast.AST):
                        todo.append((child, inside, block))
        return None

    def replaced(self, old: ast.AST, new: str) -> str:
        """The statement with `new` in place of an expression in it; of a compound one, the first line."""
        parsed = ast.parse(new, mode="eval").body
        copied = copy.deepcopy(self.around[0] if self.around else self.expression, {id(old): old})
        copied = Replacing(old, parsed).visit(copied)
        return ast.unparse(copied).partition("\n")[0]


@final
class Replacing(ast.NodeTransformer):
    """Another expression in place of one."""

    def __init__(self, old: ast.AST, new: ast.expr):
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self._new if node is self._old else super().visit(node)


def _span(node: ast.expr) -> Span:
    return node.lineno, node.end_lineno or 0, node.col_offset, node.end_col_offset or 0


def operands(expression: ast.expr) -> tuple[str, str]:
    """The source of x and of the mask in `x[mask]`, `x.f(mask)` or `torch.f(x, mask)`; "" for what is not there."""
    if isinstance(expression, ast.Subscript):
        plain = not isinstance(expression.slice, ast.Tuple)
        return ast.unparse(expression.value), ast.unparse(expression.slice) if plain else ""
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
        owner = expression.func.value
        of_module = "torch" in ast.unparse(owner) or ast.unparse(owner) in ("eager", "F")
        given = [*expression.args] if of_module else [owner, *expression.args]
        texts = [ast.unparse(a) for a in given[:2]]
        return (*texts, "", "")[:2]  # type: ignore[return-value]
    return "", ""


def _selection(place: _Place) -> str:
    """`x[mask].sum()` as `torch.where(mask, x, 0).sum()`."""
    x, mask = operands(place.expression)
    if not mask:
        return ""
    *_, call, attribute = [None, None, *place.around]
    name = attribute.attr if isinstance(attribute, ast.Attribute) and isinstance(call, ast.Call) else ""
    if name == "mean" and isinstance(call, ast.Call) and not call.args and not call.keywords:
        return place.replaced(call, f"torch.where({mask}, {x}, 0).sum() / ({mask}).sum()")
    if name and name not in _NEUTRAL:
        return ""
    return place.replaced(place.expression, f"torch.where({mask}, {x}, {_NEUTRAL.get(name, '0')})")


def _nonzero(place: _Place) -> str:
    x, _ = operands(place.expression)
    return place.replaced(place.expression, f"torch.nonzero_static({x}, size=n)") if x else ""


def _with_argument(argument: str) -> Callable[[_Place], str]:
    def write(place: _Place) -> str:
        if not isinstance(place.expression, ast.Call):
            return ""
        text = ast.unparse(place.expression)
        return place.replaced(place.expression, f"{text[:-1]}, {argument}=n)")

    return write


def _branch(place: _Place) -> str:
    """A choice between two values as `torch.where`, between other things as `graphc.cond`."""
    whole, around = place.expression, [*place.around]
    while around and isinstance(around[-1], (ast.BoolOp, ast.UnaryOp)):
        outer = around.pop()
        assert isinstance(outer, ast.expr)
        whole = outer
    test, inner = _logical(whole), around[-1] if around else None
    if isinstance(inner, ast.IfExp) and inner.test is whole:
        return place.replaced(inner, f"torch.where({test}, {ast.unparse(inner.body)}, {ast.unparse(inner.orelse)})")
    if isinstance(inner, ast.While):
        return f"carry = graphc.while_loop(lambda carry: {test}, body, carry)"
    if not isinstance(inner, ast.If):
        return ""
    one, other = inner.body, inner.orelse or _after(inner, place.block)
    if len(one) == 1 and other and type(one[0]) is type(other[0]):
        a, b = one[0], other[0]
        if isinstance(a, ast.Return) and isinstance(b, ast.Return) and a.value and b.value:
            return f"return torch.where({test}, {ast.unparse(a.value)}, {ast.unparse(b.value)})"
        if isinstance(a, ast.Assign) and isinstance(b, ast.Assign) and inner.orelse and len(other) == 1:
            target = ast.unparse(a.targets[0])
            if len(a.targets) == 1 and [ast.unparse(t) for t in b.targets] == [target]:
                return f"{target} = torch.where({test}, {ast.unparse(a.value)}, {ast.unparse(b.value)})"
    if len(one) == 1 and not inner.orelse and isinstance(one[0], ast.Assign) and len(one[0].targets) == 1:
        target = ast.unparse(one[0].targets[0])
        return f"{target} = torch.where({test}, {ast.unparse(one[0].value)}, {target})"
    return f"result = graphc.cond({test}, if_true, if_false, *operands)"


def _logical(test: ast.expr) -> str:
    """The source of a condition, with functions in place of `and`, `or` and `not`, which ask for truth values."""
    if isinstance(test, ast.BoolOp):
        name = "logical_and" if isinstance(test.op, ast.And) else "logical_or"
        return functools.reduce(lambda a, b: f"torch.{name}({a}, {b})", map(_logical, test.values))
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return f"torch.logical_not({_logical(test.operand)})"
    return ast.unparse(test)


def _after(statement: ast.stmt, block: list[ast.stmt]) -> list[ast.stmt]:
    """What runs if the condition is false, where the other branch returns."""
    at = block.index(statement)
    return block[at + 1 : at + 2]


_FORMS: dict[str, Callable[[_Place], str]] = {
    "mask": _selection, "masked_select": _selection, "nonzero": _nonzero,
    "repeat_interleave": _with_argument("output_size"), "one_hot": _with_argument("num_classes"), "truth": _branch,
}  # fmt: skip
