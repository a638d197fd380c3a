"""Errors show the user's line in a form that a graph can have."""

from __future__ import annotations

import linecache
from typing import Any

import pytest

import eager as torch
import graphc
from graphc.errors import CaptureError

# the body of f(x); the line that the error ends with, None if it shows none
LINES = {
    "idx = torch.nonzero(x)\nreturn idx": "idx = torch.nonzero_static(x, size=n)",
    "return 1 + torch.masked_select(x, x > 1).max()": "return 1 + torch.where(x > 1, x, -torch.inf).max()",
    "y = (x * 2)[x < 3]\nreturn len(y)": "y = torch.where(x < 3, x * 2, 0)",
    "return x[x < 3].quantile(0.5)": None,  # zeros for the others would change it
    "F = torch.nn.functional\nreturn F.one_hot(x.long()) + 1": "return F.one_hot(x.long(), num_classes=n) + 1",
    "if x.sum() > 0:\n    return x * 2\nreturn x": "return torch.where(x.sum() > 0, x * 2, x)",
    "if x.sum() > 0:\n    y = x * 2\nelse:\n    y = x\nreturn y": "y = torch.where(x.sum() > 0, x * 2, x)",
    "y = x + 1 if not x.sum() > 0 else x\nreturn y": "y = torch.where(torch.logical_not(x.sum() > 0), x + 1, x)",
    "if x.sum() > 0 and x.max() < 3:\n    print(x)\n    x = -x\nreturn x":
        "result = graphc.cond(torch.logical_and(x.sum() > 0, x.max() < 3), if_true, if_false, *operands)",
    "while x.sum() > 0:\n    x = x - 1\nreturn x": "carry = graphc.while_loop(lambda carry: x.sum() > 0, body, carry)",
    "if x.sum() > 0:\n    x = x - 1\nreturn x": "x = torch.where(x.sum() > 0, x - 1, x)",
    "return x.unique()": None,
}  # fmt: skip


@pytest.mark.parametrize("body", LINES)
def test_the_line_is_rewritten(body: str) -> None:
    source = "def f(x):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    name = f"program_{abs(hash(body))}.py"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names: dict[str, Any] = {"torch": torch}
    exec(compile(source, name, "exec"), names)
    with pytest.raises(CaptureError) as caught:
        graphc.trace(names["f"], torch.tensor([1.0, -2.0, 3.0]))
    *_, last = str(caught.value).splitlines()
    assert (last.strip() if last.startswith("    ") else None) == LINES[body]
    del linecache.cache[name]


def test_without_the_source_the_message_is_whole() -> None:
    names: dict[str, Any] = {"torch": torch}
    exec("def f(x):\n    return torch.nonzero(x)\n", names)
    with pytest.raises(CaptureError, match=r"Remedy: use torch\.nonzero_static\(x, size=n\)"):
        graphc.trace(names["f"], torch.ones(2))
