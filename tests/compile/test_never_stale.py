"""A compiled function gives what eager gives, before and after Python state has changed."""

from __future__ import annotations

import contextvars
import os

import numpy as np
import pytest

import eager as torch
import graphc
from tests.capture import test_environment  # noqa: F401  (its modules of cases)
from tests.capture.changes import CHANGED, UNCHANGED, X
from tests.depth import one_in

pytestmark = pytest.mark.on_numpy


def outcome(fn, args):
    """What a call gives, as nested lists; the type of what it raises."""
    torch.manual_seed(0)
    try:
        return values(fn(*args))
    except Exception as error:
        return type(error)


def values(result):
    if isinstance(result, torch.Tensor):
        return result.detach().numpy().tolist()
    return [values(r) for r in result] if isinstance(result, (list, tuple)) else result


def both_ways(case):
    """Four outcomes: eager and compiled before the change, and after it. Each way has its own state."""
    found = []
    names, dtype = dict(case.__globals__), torch.get_default_dtype()
    for way in (lambda fn: fn, graphc.compile):
        torch.manual_seed(1)
        generator = case()
        given = next(generator)
        fn, args = given if isinstance(given, tuple) else (given, (X,))
        run = way(fn)
        before = outcome(run, args), outcome(run, args)
        next(generator, None)
        found.append((*before, outcome(run, args)))
        case.__globals__.clear()
        case.__globals__.update(names)
        torch.set_default_dtype(dtype)
        os.environ.pop("GRAPHC_TEST", None)
    return found


# tests/capture/test_environment.py notices the change in each of them
@pytest.mark.parametrize("case", one_in(6, [*CHANGED, *UNCHANGED], lambda p: p.id))
def test_compiled_is_eager_before_and_after_a_change(case):
    eager, compiled = contextvars.copy_context().run(both_ways, case.values[0])
    for a, b in zip(eager, compiled, strict=True):
        if isinstance(a, type) or isinstance(b, type) or a is None:
            assert a == b
        else:
            np.testing.assert_allclose(np.array(b, float), np.array(a, float), rtol=1e-5, atol=1e-6)
