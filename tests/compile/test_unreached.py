"""A gradient that does not arrive is None, not zeros: for each set of results that is differentiated, as in eager."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from eager.utils.checkpoint import checkpoint

INPUTS, RESULTS = 5, 3
Link = Callable[[Any, Any], Any]


class Pair(torch.autograd.Function):
    """Two outputs, each of one input."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.set_materialize_grads(False)
        return a * 2, b * 3

    @staticmethod
    def backward(ctx: Any, ga: Any, gb: Any) -> Any:
        return None if ga is None else ga * 2, None if gb is None else gb * 3


class Materialized(torch.autograd.Function):
    """A rule that is called with zeros for what has not arrived, and is not linear."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        return a.sin(), b.cos()

    @staticmethod
    def backward(ctx: Any, ga: Any, gb: Any) -> Any:
        return ga + 1, gb + 2


class Straight(torch.autograd.Function):
    """No gradient for its second input."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        return a * b

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g.sign(), None


def hooked(a: Any, b: Any) -> Any:
    h = a * b
    h.register_hook(lambda g: g + 1)
    return h


def written(a: Any, b: Any) -> Any:
    h = a * 2
    h[1:] = b[1:]
    h[:1].mul_(3)
    return h


def overwritten(a: Any, b: Any) -> Any:
    h = a * 2
    return h.copy_(b)  # a has a history here, and no gradient but zeros


def unrecorded(a: Any, b: Any) -> Any:
    with torch.no_grad():
        h = b * 3
    return a + h


def looped(a: Any, b: Any) -> Any:
    return graphc.fori_loop(0, 3, lambda i, h: h * b.sigmoid(), a)


def scanned(a: Any, b: Any) -> Any:
    _, rows = graphc.scan(lambda c, row: (c + row, c * row), a.sum(), b)
    return rows


def scanned_carry(a: Any, b: Any) -> Any:
    carry, _ = graphc.scan(lambda c, row: (c * 2, c + row), a.sum(), b)
    return carry * torch.ones(4)


LINKS: dict[str, Link] = {
    "product": lambda a, b: a * b,
    "log": lambda a, b: (a - a).log() * 0 + b,  # infinite gradients, of which zeros would make nan
    "sum": lambda a, b: a.sum() + b,
    "matmul": lambda a, b: a.outer(b).sum(0),
    "where": lambda a, b: torch.where(a > 0, a, b),
    "sort": lambda a, b: a.sort()[0] * b.softmax(0),
    "cat": lambda a, b: torch.cat([a, b])[2:6],
    "pieces": lambda a, b: torch.stack([a, b]).unbind(0)[1],
    "detached": lambda a, b: a.detach() * b,
    "unrecorded": unrecorded,
    "of no elements": lambda a, b: a + b[:0].sum(),
    "written": written,
    "overwritten": overwritten,
    "vmapped": lambda a, b: torch.func.vmap(lambda p, q: p * q)(a, b),
    "indices": lambda a, b: a[b.detach().argsort()],
    "a hook": hooked,
    "a rule": Straight.apply,
    "first of two": lambda a, b: Pair.apply(a, b)[0],
    "second of two": lambda a, b: Materialized.apply(a, b)[1],
    "both of two": lambda a, b: sum(Pair.apply(a, b)),
    "a loop": looped,
    "a scan": scanned,
    "a scan's carry": scanned_carry,
    "cond": lambda a, b: graphc.cond(a.detach().sum() > 0, lambda p, q: p * q, lambda p, q: p - q, a, b),
    "Python's if": lambda a, b: a * 2 if a.detach().sum() > 0 else b * 2,
    "checkpoint": lambda a, b: checkpoint(lambda p, q: p * q, a, b, use_reentrant=False),
}  # fmt: skip


def program(seed: int) -> Callable[..., Any]:
    """A function of INPUTS vectors with RESULTS results, each of which depends on some of the inputs.

    Results share what they are made of: a chain of links, from which each takes some.
    """
    rng = random.Random(seed)
    links = [(rng.choice(sorted(LINKS)), rng.randrange(INPUTS + k), rng.randrange(INPUTS + k)) for k in range(4)]
    taken = [rng.sample(range(INPUTS + len(links)), rng.choice([1, 1, 2])) for _ in range(RESULTS)]

    def function(*inputs: Any) -> Any:
        values = list(inputs)
        for name, a, b in links:
            values.append(LINKS[name](values[a], values[b]))
        return tuple(sum(values[k] for k in ks) * (n + 1.0) for n, ks in enumerate(taken))

    function.__doc__ = f"{links} -> {taken}"
    return function


def inputs(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [torch.tensor(rng.normal(size=4).astype(np.float32), requires_grad=True) for _ in range(INPUTS)]


def subsets() -> Iterator[tuple[int, ...]]:
    return (s for n in range(1, RESULTS + 1) for s in itertools.combinations(range(RESULTS), n))


def gradients(function: Callable[..., Any], seed: int, chosen: tuple[int, ...]) -> list[Any]:
    given = inputs(seed)
    results = function(*given)
    return list(torch.autograd.grad([results[k].sum() for k in chosen], given, allow_unused=True))


def second_gradients(function: Callable[..., Any], seed: int, chosen: tuple[int, ...]) -> list[Any]:
    given = inputs(seed)
    results = function(*given)
    first = torch.autograd.grad(
        [results[k].sum() for k in chosen], given, allow_unused=True, create_graph=True
    )  # fmt: skip
    again = [(g * g).sum() for g in first if g is not None and g.requires_grad]
    return [*first, *(torch.autograd.grad(again, given, allow_unused=True) if again else ())]


def accumulated(function: Callable[..., Any], seed: int, chosen: tuple[int, ...]) -> list[Any]:
    """`.grad`, and what hooks on leaves and on an intermediate value have seen."""
    given = inputs(seed)
    inner = [t * 1 for t in given]
    seen: list[Any] = []
    for number, t in enumerate([*given, *inner]):
        t.register_hook(lambda g, number=number: seen.append((number, g.clone())))
    for t in inner:
        t.retain_grad()
    results = function(*inner)
    for k in chosen:  # one after the other
        results[k].sum().backward(retain_graph=True)
    order = sorted(seen, key=lambda pair: pair[0])
    return [*(t.grad for t in given), *(t.grad for t in inner), *(x for pair in order for x in pair)]


def moved(kind: Callable[..., Any]) -> Callable[..., list[Any]]:
    def steps(function: Callable[..., Any], seed: int, chosen: tuple[int, ...]) -> list[Any]:
        given = inputs(seed)
        optimizer = kind(given)
        for k in [*chosen, *chosen]:
            optimizer.zero_grad()
            function(*given)[k].sum().backward()
            optimizer.step()
        return [*given, len(optimizer.state)]

    return steps


WAYS: dict[str, Callable[..., list[Any]]] = {
    "grad": gradients,
    "backward": accumulated,
    "SGD": moved(lambda ps: torch.optim.SGD(ps, 0.01, momentum=0.9, weight_decay=0.1)),
    "Adam": moved(lambda ps: torch.optim.AdamW(ps, 0.01)),
    "twice": second_gradients,
}


def outcome(way: Callable[..., list[Any]], *given: Any) -> Any:
    try:
        return way(*given)
    except RuntimeError as error:
        return str(error).splitlines()[0]


def check_equal(found: Any, expected: Any) -> None:
    if isinstance(expected, str):
        assert found == expected
        return
    assert not isinstance(found, str), found
    assert [g is None for g in found] == [g is None for g in expected]
    for mine, theirs in zip(found, expected, strict=True):
        if isinstance(theirs, torch.Tensor):
            np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=2e-4, atol=2e-5)
        else:
            assert mine == theirs


def compare(seed: int, dynamic: bool = False) -> None:
    function = program(seed)
    compiled = graphc.compile(function, dynamic=dynamic)
    for chosen in subsets():
        for name, way in WAYS.items():
            if name == "twice" and "of two" in str(function.__doc__):
                continue  # rules are traced for it with zeros for what has not arrived (docs/compile.md)
            try:
                check_equal(outcome(way, compiled, seed, chosen), outcome(way, function, seed, chosen))
            except AssertionError as error:
                raise AssertionError(f"{name} of results {chosen} of {function.__doc__}: {error}") from error


@pytest.mark.parametrize("seed", range(3))
def test_what_is_not_reached_has_no_gradient(seed: int) -> None:
    compare(seed)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3, 60))
def test_what_is_not_reached_has_no_gradient_in_many_programs(seed: int) -> None:
    compare(seed, dynamic=seed % 4 == 0)
