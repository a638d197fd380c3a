"""Generated functions name few objects as parameters, many in a list; what they do is the same."""

from __future__ import annotations

import inspect

import pytest

from graphc.capture.generated import MANY, Names


@pytest.mark.parametrize("count", [3, MANY, MANY + 1, 500])
def test_every_object_is_found_under_its_name(count: int):
    names, objects = Names(), [object() for _ in range(count)]
    lines = [f" found.append({names.of(o)})" for o in objects]
    text = " found += ['v0', \"it's v1\", extra]"  # names in texts stay
    f = names.bind("f", ["def f(found):", *lines, text, " return shared(found)"], {"extra": 7}, {"shared": tuple})
    assert f([]) == (*objects, "v0", "it's v1", 7)
    assert ("objects[0]" in inspect.getsource(f)) is (count + 1 > MANY)


def test_a_shared_name_may_change():
    shared = {"limit": 3}
    names = Names()
    many = [names.of(object()) for _ in range(MANY + 1)]
    f = names.bind("f", ["def f(x):", *(f" {name}" for name in many), " return x < limit"], shared=shared)
    before = f(5)
    shared["limit"] = 10
    assert (before, f(5)) == (False, True)
