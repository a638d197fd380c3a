"""Containers that a function adds to, and reads, writes or empties as well: each call leaves what eager leaves."""

from __future__ import annotations

import itertools
import random
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
import graphc

pytestmark = pytest.mark.on_numpy

ONE = torch.tensor([1.0, 2.0])

# how the container begins, and the ways to write it and to read it; `c` is the container, `x` and `y` are tensors
SEQUENCE = (
    (
        "c.append(x)",
        "c.extend([x, y])",
        "c.append((x, 1))",
        "c.clear()",
        "c[0] = y",
        "c[1] = x * 2",
        "c.append(x + 2.5)",
    ),
    ("c[0]", "c[1]", "c[-1]", "len(c)", "c[0] is None", "bool(c)", "1"),
)
MAPPING = (
    ("c.update(a=x)", "c.update({'b': y, 'n': x})", "c['a'] = y", "c['n'] = x", "c.pop('b', None)", "c.clear()",
     "c.setdefault('z', x)", "c.update(k=1.5)"),
    ("c['a']", "c.get('b')", "'n' in c", "len(c)", "c['k']", "1"),
)  # fmt: skip
SET = (("c.add('k')", "c.update(('a', 'b'))", "c.clear()", "c.discard('a')"), ("'a' in c", "len(c)", "1"))
KINDS: dict[str, tuple[Callable[[], Any], tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "list": (lambda: [ONE, 3.0, None], SEQUENCE),
    "deque": (lambda: deque([ONE, 3.0, None]), (("c.appendleft(x)", *SEQUENCE[0]), SEQUENCE[1])),
    "short deque": (lambda: deque([ONE, 3.0], maxlen=2), (("c.appendleft(y)", *SEQUENCE[0]), SEQUENCE[1])),
    "dict": (lambda: {"a": ONE, "k": 3.0, "b": None}, MAPPING),
    "OrderedDict": (lambda: OrderedDict(a=ONE, k=3.0, b=None), MAPPING),
    "defaultdict": (lambda: defaultdict(lambda: 7.0, a=ONE, k=3.0, b=None), MAPPING),
    "set": (lambda: {"a", "c"}, SET),
}


def source(kind: str, seed: int) -> str:
    """A function `f(x)` over a global container `c`, as text."""
    rng = random.Random(f"{kind} {seed}")
    writes, reads = KINDS[kind][1]
    lines = ["def f(x):", "    y, total = x * 3, x * 0"]
    left_out = rng.choice(("] =", "clear"))  # c[0] = x of what the call before has emptied is not refused
    for _ in range(rng.randint(2, 4)):
        lines.append("    " + rng.choice([w for w in writes if left_out not in w]))
        if rng.random() < 0.6:
            lines += [f"    r = {rng.choice(reads)}", "    total = total + (0 if r is None or type(r) is tuple else r)"]
    return "\n".join([*lines, "    return total", ""])


def made(text: str, kind: str) -> tuple[Callable[..., Any], Any]:
    scope: dict[str, Any] = {"c": KINDS[kind][0]()}
    exec(compile(text, "<grown>", "exec"), scope)
    return scope["f"], scope["c"]


def shown(value: Any) -> Any:
    """`value` with lists in place of tensors."""
    if isinstance(value, torch.Tensor):
        return ["tensor", [round(v, 4) for v in value.reshape(-1).tolist()]]
    if isinstance(value, dict):
        return [type(value).__name__, [(k, shown(v)) for k, v in value.items()]]
    if isinstance(value, set):
        return sorted(value)
    return [shown(v) for v in value] if isinstance(value, (list, tuple, deque)) else value


def outcome(f: Callable[..., Any], x: Any) -> Any:
    try:
        return shown(f(x))
    except Exception as error:
        return type(error).__name__


def check(kind: str, seed: int) -> None:
    text = source(kind, seed)
    (plain, expected), (fn, found) = made(text, kind), made(text, kind)
    compiled = graphc.compile(fn)
    for call in range(5):
        x = torch.tensor([0.5, -1.0]) * (call + 1)
        assert outcome(compiled, x) == outcome(plain, x), f"call {call}\n{text}"
        assert shown(found) == shown(expected), f"after call {call}\n{text}"


@pytest.mark.parametrize(("kind", "seed"), [*itertools.product(KINDS, range(12))])
def test_what_calls_leave_is_what_eager_leaves(kind: str, seed: int) -> None:
    check(kind, seed)


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_many_programs(kind: str) -> None:
    for seed in range(12, 150):
        check(kind, seed)


def test_a_history_that_is_read_at_its_beginning_is_traced_once() -> None:
    history = [torch.zeros(2)]

    def f(x: Any) -> Any:
        history.append(x.detach())
        return x - history[0]

    compiled = graphc.compile(f)
    for k in range(20):
        compiled(torch.full((2,), float(k)))
    assert [t[0].item() for t in history] == [0.0, *map(float, range(20))]
    assert "f: 1 program\n" in compiled.explain()
