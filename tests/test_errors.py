"""Errors of graphc itself."""

from __future__ import annotations

import sys

import pytest

from graphc.errors import MissingExtraError, require


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r"the digits demo needs sklearn, .* pip install 'graphc\[demo\]'"):
        require("sklearn", "the digits demo", "demo")


def test_what_is_installed_is_returned():
    assert require("json", "this test", "none").dumps([1]) == "[1]"
