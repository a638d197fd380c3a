"""`x[mask]`, whose number of elements nobody has asked for, and other tensors that show its memory."""

from __future__ import annotations

from typing import Any

import pytest

import eager as torch
import graphc

pytestmark = pytest.mark.on_numpy


def detached(x: Any) -> Any:
    picked = x[x > 0.3]
    alias = picked.detach()
    picked.mul_(2)
    return picked, alias


def written_through_the_alias(x: Any) -> Any:
    picked = x[x > 0.3]
    picked.detach().mul_(2)
    return picked


def data_of_an_alias(x: Any) -> Any:
    picked = x[x > 0.3]
    alias = picked.detach().data
    alias.add_(1)
    picked.mul_(2)
    return picked, alias


def set_to_it(x: Any) -> Any:
    picked, other = x[x > 0.3], x * 1
    other.set_(picked)
    picked.mul_(2)
    return picked, other


def drawn(x: Any) -> Any:
    picked = x[x > 0.3]
    alias = picked.detach()
    picked.bernoulli_(0.5)
    return picked, alias


def asked_of_the_alias(x: Any) -> Any:
    picked = x[x > 0.3]
    alias = picked.detach()
    count = alias.shape[0]
    picked.mul_(2)
    return picked, alias * count


def asked_of_the_selection(x: Any) -> Any:
    picked = x[x > 0.3]
    alias = picked.detach()
    again = alias.detach()
    count = picked.shape[0]
    again.add_(1)
    return picked * count, alias, again


def put_back(x: Any) -> Any:
    picked = x[x > 0.3]
    x[x > 0.3] = picked * 3 - picked.detach()
    return x


PROGRAMS = [detached, written_through_the_alias, data_of_an_alias, set_to_it, drawn, asked_of_the_alias,
            asked_of_the_selection, put_back]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_an_alias_of_a_selection_sees_what_is_written(f: Any):
    fast = graphc.compile(f)
    for values in ([0.5, 0.25, 0.75], [1.0, 2.0, 3.0], [0.5, 0.25, 0.75]):
        results = []
        for fn in (f, fast):
            torch.manual_seed(1)
            found = fn(torch.tensor(values))
            results.append([t.tolist() for t in (found if isinstance(found, tuple) else (found,))])
        assert results[0] == results[1]


def test_a_detached_selection_that_nobody_writes_needs_no_count():
    fast = graphc.compile(put_back)
    for values in ([0.5, 0.25, 0.75], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0]):
        assert fast(torch.tensor(values)).tolist() == put_back(torch.tensor(values)).tolist()
    assert len(fast.explain().programs) == 1
