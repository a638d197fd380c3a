"""Arguments and results of every kind: dtypes, NumPy, enums, containers, Python values."""

from __future__ import annotations

import enum
from collections import defaultdict, deque, namedtuple
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import eager as torch
from tests.scenarios.harness import attempt, program

X = torch.tensor([1.0, 2.0, 3.0])
FLOATING = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


class Mode(enum.Enum):
    ADD = "add"
    SCALE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 10


class State(NamedTuple):
    h: Any
    c: Any
    step: int = 0


@program
def every_dtype_goes_in_and_comes_out(compile):
    f = compile(lambda x: (x, x + x, x.sum(), x[0], x.to(torch.float64), x == x))
    kinds = (*FLOATING, *WHOLE, torch.complex64, torch.complex128)
    return [f(torch.tensor([0, 1, 1]).to(kind)) for kind in kinds for _ in range(2)]


@program
def dtypes_promote_with_python_numbers(compile):
    f = compile(lambda x, k: x * k)
    return [f(torch.ones(2, dtype=d), k) for d in (*FLOATING, *WHOLE[1:]) for k in (2, 2.5, True)]


@program
def zero_dimensional_and_empty(compile):
    f = compile(lambda x: (x.sum(), x * 2, x.reshape(-1), x.numel(), x.shape))
    return f(torch.tensor(3.0)), f(torch.zeros(0)), f(torch.zeros(2, 0, 3)), f(torch.ones(1, 1)), f(torch.tensor(True))


@program
def none_strings_and_flags(compile):
    def f(x, mask=None, how="sum", flag=False):
        if mask is not None:
            x = x * mask
        y = getattr(x, how)()
        return -y if flag else y

    c = compile(f)
    return [c(X), c(X, None), c(X, X), c(X, X, "mean"), c(X, how="max", flag=True), c(X, None, "sum", True), c(X)]


@program
def numbers_that_are_equal_but_of_another_type(compile):
    f = compile(lambda k: (torch.full((2,), k), type(k).__name__, k))
    return [f(k) for k in (1, 1.0, True, 0, 0.0, -0.0, False, float("nan"), float("nan"), float("inf"), 2**40)]


@program
def enums_by_value(compile):
    def f(x, mode, level):
        y = x + 1 if mode is Mode.ADD else x * mode.value
        return y * level, mode

    c = compile(f)
    return [c(X, m, v) for _ in range(2) for m in Mode for v in Level]


@program
def numpy_arrays_by_content(compile):
    f = compile(lambda x, a: x + torch.from_numpy(a) * a.sum())
    a = np.ones(3, np.float32)
    found = [f(X, a), f(X, a.copy())]
    a[0] = 5
    found += [f(X, a), f(X, np.zeros(3, np.float32)), f(X, a[::-1].copy())]
    return [*found, f(X, np.ones(3, np.float64)), f(X, np.ones(3, np.float32))]


@program
def numpy_arrays_that_the_function_writes(compile):
    def f(x, a):
        a[0] += 1
        return x * float(a[0])

    c = compile(f)
    a, b = np.zeros(2), np.zeros(2)
    return c(X, a), a.copy(), c(X, a), a.copy(), c(X, b), b.copy(), a


@program
def numpy_scalars(compile):
    f = compile(lambda x, k: (x * k, type(k).__name__))
    kinds = (np.float32, np.float64, np.int64, np.int32, np.float16, np.bool_)
    return [f(X, kind(v)) for kind in kinds for v in (1, 3)], f(X, np.array(2.0)), f(X, np.array(3.0))


@program
def dtypes_devices_and_sizes(compile):
    f = compile(lambda x, d, s: torch.zeros(s, dtype=d) + x.sum().to(d))
    kinds, sizes = (torch.float32, torch.float64, torch.int64), (torch.Size([2]), torch.Size([1, 3]), (2,))
    found = [f(X, d, s) for d in kinds for s in sizes]
    g = compile(lambda x, device: (x.to(device), x.device == torch.device(device)))
    return found, g(X, "cpu"), g(X, torch.device("cpu")), f(X, torch.float32, [2])


@program
def slices_ranges_and_ellipsis(compile):
    f = compile(lambda x, i: x[i])
    x = torch.arange(12.0).reshape(3, 4)
    slices = slice(1), slice(None, None, 2), (slice(None), 1), (0, slice(1, 3))
    keys = (*slices, ..., (..., 0), None, 2, -1, [0, 2], range(2))
    return [f(x, k) for _ in range(2) for k in keys], f(x, torch.tensor([1, 0]))


@program
def nested_namedtuples_that_carry_a_state(compile):
    def step(state, x):
        h = torch.tanh(state.h + x)
        return h, state._replace(h=h, c=[state.c[0] + h, {"x": x}], step=state.step + 1)

    c = compile(step)
    state, found = State(torch.zeros(3), [torch.zeros(3), {}]), []
    for _ in range(3):
        h, state = c(state, X)
        found.append((h, state))
    return found


@program
def default_dicts_and_deques(compile):
    def f(d, q):
        total = sum(d["x"]) + d["missing"].__len__()
        q.append(total)
        return defaultdict(list, y=[total]), deque(q, maxlen=2)

    c = compile(f)
    out = []
    for i in range(3):
        d, q = defaultdict(list, x=[X, X * i]), deque([1.0])
        table, recent = c(d, q)
        out.append((type(table).__name__, dict(table), list(recent), recent.maxlen, list(d), list(q)))
    return out


@program
def subclasses_of_containers(compile):
    class Rows(list):
        def total(self):
            return sum(self)

    class Config(dict):
        __getattr__ = dict.__getitem__

    f = compile(lambda rows, config: Rows([rows.total() * config.scale, config["x"]]))
    first = f(Rows([X, X]), Config(scale=2.0, x=X))
    return type(first).__name__ == "Rows", list(first), list(f(Rows([X]), Config(scale=3.0, x=X))), first.total()


@program
def dataclasses_nested_frozen_and_with_methods(compile):
    @dataclass(frozen=True)
    class Inner:
        w: Any
        k: int = 1

    @dataclass
    class Outer:
        inner: Inner
        extra: list = field(default_factory=list)

        def apply(self, x):
            return x @ self.inner.w * self.inner.k

    def f(o, x):
        y = o.apply(x)
        return y, replace(o, inner=replace(o.inner, k=o.inner.k + 1), extra=[*o.extra, y])

    c = compile(f)
    o, found = Outer(Inner(torch.eye(3))), []
    for _ in range(3):
        y, o = c(o, X)
        found += [y, o.inner.k, list(o.extra)]
    return found


@program
def python_values_in_results(compile):
    f = compile(
        lambda x, n: (x * 2, n + 1, "text", None, x.shape, x.dtype, {"a": (1, 2.5), n: x.ndim}, Mode.ADD, [True])
    )
    return [f(x, n) for x in (X, X[:2], X.double()) for n in (1, 2)]


@program
def results_that_python_computes_from_tensors(compile):
    f = compile(lambda x: (x.sum().item(), int(x.max()), float(x[0]), x.tolist(), bool(x[0] > 0), len(x), str(x.shape)))
    return f(X), f(X + 1), f(-X), f(X)


@program
def a_function_without_result(compile):
    f = compile(lambda x: None)
    g = compile(lambda: torch.ones(2))
    h = compile(lambda x: x.add_(1) and None if x.numel() == 1 else None)
    x = torch.zeros(1)
    return f(X), f(X), g(), g() is g(), attempt(h, x), attempt(h, x), x


@program
def tuples_of_one_and_empty_containers(compile):
    f = compile(lambda xs, d: ((xs[0],) if xs else (), [], {}, [[]], {"d": d}))
    return f([X], {}), f([], {}), f((), {"a": []}), f((X,), {"a": [X]})


@program
def objects_as_arguments_by_their_attributes(compile):
    class Config:
        def __init__(self, scale, w):
            self.scale, self.w = scale, w

    f = compile(lambda x, config: x * config.scale + config.w)
    a, b = Config(1.0, X), Config(2.0, X * 10)
    found = [f(X, a), f(X, b), f(X, a)]
    a.scale = 5.0
    b.w = torch.zeros(3)
    return [*found, f(X, a), f(X, b), f(X, Config(7.0, X))]


@program
def arguments_that_the_function_changes(compile):
    class Box:
        pass

    def f(x, box, items, table):
        box.value = x * 2
        items.append(x + len(items))
        table["n"] = table.get("n", 0) + 1
        return box.value.sum()

    c = compile(f)
    box, items, table = Box(), [], {}
    found = [c(X + i, box, items, table) for i in range(3)]
    return found, box.value, items, table


@program
def a_list_argument_is_popped_and_sorted(compile):
    def f(items, names):
        last = items.pop()
        names.sort()
        items.insert(0, last * 2)
        del items[1:2]
        return last

    c = compile(f)
    items, names = [X, X + 1, X + 2], ["b", "a"]
    return [c(items, names) for _ in range(3)], items, names


@program
def other_numbers(compile):
    f = compile(lambda x, k: x * float(k))
    return [f(X, k) for k in (Fraction(1, 2), Fraction(1, 3), Fraction(1, 2))], compile(lambda x, z: x * z)(X, 1 + 2j)


@program
def sets_and_frozensets(compile):
    f = compile(lambda x, names: x * len(names) if "a" in names else x)
    return [f(X, s) for s in ({"a", "b"}, {"b"}, frozenset("abc"), {"a", "b"}, set())]


@program
def many_shapes(compile):
    f = compile(lambda x: (x * 2).sum())
    return [f(torch.ones(n)) for n in range(12)], [f(torch.ones(n)) for n in range(12)]


@program
def tensors_in_keys_and_as_default_arguments(compile):
    w = torch.tensor([1.0, 1.0, 1.0])

    def f(x, w=w, *, cache={}):  # noqa: B006
        cache.setdefault("first", x * 1)
        return x + w, cache["first"]

    c = compile(f)
    found = [c(X), c(X * 2)]
    w += 1
    return [*found, c(X), c(X, X)]


@program
def strided_and_read_only_inputs(compile):
    f = compile(lambda x: (x * 2, x.sum(0), x.is_contiguous(), x.stride()))
    x = torch.arange(12.0).reshape(3, 4)
    return [f(v) for v in (x, x.t(), x[::2], x[:, 1:3], x.expand(2, 3, 4), x.t().contiguous(), x.flip(0))]


Pair = namedtuple("Pair", "a b")


@program
def results_share_their_containers(compile):
    def f(x):
        pair = Pair([x], {"x": x})
        return pair, pair.a, pair.b

    c = compile(f)
    pair, a, b = c(X)
    a.append(1)
    return len(pair.a), pair.a is a, pair.b is b, pair.b["x"] is a[0]


class Output:
    def __init__(self, loss, parts):
        self.loss, self.parts, self.itself = loss, parts, self


class Slotted:
    __slots__ = ("count", "value")

    def __init__(self, value):
        self.value, self.count = value, 3


@program
def objects_of_the_users_own(compile):
    kept = SimpleNamespace(weight=torch.ones(2), last=None)

    def f(x):
        out = Output(x + 1, {"twice": [x * 2]})
        kept.last = Output(x * 5, ())
        return out, SimpleNamespace(out=out, total=x.sum().item()), Slotted(x - 1), kept, Output(kept.weight, None)

    c, found = compile(f), []
    for k in range(3):
        out, space, slotted, same, old = c(torch.full((2,), float(k)))
        found += [out.loss, out.parts, out.itself is out, space.out is out, space.total, slotted.value, slotted.count]
        found += [same is kept, kept.last.loss, old.loss is kept.weight]
    return found


@program
def kinds_of_numbers_that_vary(compile):
    def f(x, k):
        return x * 2 if type(k) is int else x * k

    c = compile(f)
    return [c(X, k) for k in (1, 2, 3.0, 4.0, 5, 6.5)]
