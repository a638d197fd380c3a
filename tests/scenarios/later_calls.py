"""What a later call meets: state, arguments and results that were not there when the function was traced."""

from __future__ import annotations

import types
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from typing import Any

import eager as torch
from tests.scenarios.harness import attempt, program

X = torch.tensor([1.0, 2.0, 3.0])


@dataclass
class Cursor:
    at: int
    seen: Any


@program
def a_dataclass_argument_is_updated(compile):
    def f(cursor, x):
        cursor.at += 1
        cursor.seen = cursor.seen + x
        cursor.extra = cursor.at * 2
        return cursor

    c, cursor = compile(f), Cursor(0, torch.zeros(3))
    same = [c(cursor, X) is cursor for _ in range(3)]
    return same, cursor, cursor.extra, c(Cursor(5, X), X).at


@program
def nested_containers_are_updated(compile):
    def f(tree, x):
        tree["layers"][0].append(x * 2)
        tree["layers"].reverse()
        tree["stats"]["sum"] = tree["stats"].get("sum", 0) + x.sum()
        tree["new"] = [tree["layers"][0]]
        return tree["new"][0] is tree["layers"][0], len(tree["layers"][0])

    c, tree = compile(f), {"layers": [[], [X]], "stats": {}}
    return [c(tree, X * i) for i in range(4)], tree, tree["new"][0] is tree["layers"][0]


@program
def one_container_in_two_arguments(compile):
    def f(a, b):
        a.append(b[0] * 2)
        return len(b), a is b

    c, one, other = compile(f), [X], [X]
    return c([X], [X]), c(one, one), c(one, other), len(one), len(other), c(other, other)


@program
def a_container_that_is_kept_and_returned(compile):
    class Owner:
        def __init__(self):
            self.batches = []
            self.last = None

        @compile
        def take(self, batch):
            self.last = batch
            self.batches.append(batch)
            return batch["x"] * 2

        @compile
        def history(self):
            return self.batches, self.last

    owner, batches = Owner(), [{"x": X * i} for i in range(3)]
    found = [owner.take(b) for b in batches]
    history, last = owner.history()
    kept = [a is b for a, b in zip(owner.batches, batches, strict=True)]
    return found, kept, last is batches[-1], history is owner.batches, len(history)


@program
def exceptions_after_containers_have_changed(compile):
    def f(items, x):
        items.append(x * 2)
        if x.sum() < 0:
            raise ValueError(len(items))
        items.append(x)

    c, items = compile(f), []
    return [attempt(c, items, X * k) for k in (1.0, -1.0, 1.0, -1.0)], items


@program
def exceptions_carry_tensors(compile):
    class Bad(Exception):
        def __init__(self, x):
            super().__init__("bad", x)
            self.x, self.total = x, x.sum().item()

    def f(x):
        if x.max() > 5:
            raise Bad(x * 2)
        return x

    c, found = compile(f), []
    for k in (1.0, 3.0, 4.0, 1.0):
        try:
            found.append(c(X * k))
        except Bad as error:
            found.append((error.x + 1, error.total, type(error.total).__name__, error.args[1]))
    return found


@program
def write_only_containers_of_every_kind(compile):
    log, names, table, recent, ordered = [], set(), {}, deque(maxlen=3), OrderedDict()

    @compile
    def f(x, name):
        log.append((name, x.sum()))
        log.extend([x.mean()] * 2)
        names.add(name)
        table.update({name: x})
        recent.append(x[0])
        ordered.update(last=x)
        return x * 2 if x.sum() > 0 else -x

    for i, name in enumerate("abcab"):
        f(X * (i - 2), name)
    log.clear()
    f(X, "a")
    return log, sorted(names), table, recent.maxlen, list(recent), dict(ordered)


@program
def a_log_that_is_cleared_each_call(compile):
    log = []

    @compile
    def f(x):
        log.clear()
        log.append(x)
        log.append(x.sum())

    found = []
    for i in range(3):
        f(X * i)
        found.append(list(log))
    log.append("more")
    f(X)
    return found, log


@program
def counters_and_default_dicts(compile):
    counts, groups = Counter(), defaultdict(list)

    @compile
    def f(x, name):
        counts[name] += 1
        counts.update([name, "all"])
        groups[name].append(x.sum())
        return x * counts[name] + len(groups[name])

    return [f(X, n) for n in "abaab"], dict(counts), dict(groups)


@program
def the_value_of_state_that_python_reads(compile):
    state = types.SimpleNamespace(flag=torch.tensor(False), k=torch.tensor(2.0))

    @compile
    def f(x):
        y = x if state.flag else -x
        return y * int(state.k) + len(str(bool(state.flag)))

    found = [f(X)]
    for flag, k in ((False, 2.0), (True, 2.0), (True, 3.0), (False, 2.0), (True, 3.0)):
        state.flag, state.k = torch.tensor(flag), torch.tensor(k)
        found.append(f(X))
    return found


@program
def the_shape_of_state_that_is_only_asked_for(compile):
    state = types.SimpleNamespace(t=torch.zeros(1), other=None)

    @compile
    def f(x):
        return x * state.t.shape[0] if state.t is not None else (x, state.t)

    found = []
    for n in (1, 1, 2, 3, None, 2, None):
        state.t = None if n is None else torch.zeros(n)
        found.append(f(X))
    return found


@program
def state_that_comes_to_require_grad(compile):
    state = types.SimpleNamespace(h=torch.ones(3))
    f, found = compile(lambda x: (x * state.h).sum()), []
    for requires in (False, False, True, False, True):
        state.h = torch.ones(3, requires_grad=requires)
        y = f(X)
        if requires:
            y.backward()
        found.append((y, state.h.grad))
    return found


@program
def one_tensor_in_two_places(compile):
    state = types.SimpleNamespace(a=torch.zeros(3), b=torch.ones(3))

    @compile
    def f(x):
        state.a.add_(x)
        state.b = state.b * 2
        return state.a + state.b

    found = [f(X), f(X)]
    state.a = state.b
    found += [f(X), state.a]
    state.b = state.a
    return [*found, f(X), state.a is state.b, f(X)]
