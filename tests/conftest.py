"""What every test shares: a seeded random generator, and ops that a test declares for itself."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from graphc.ops import OPS, Op, op
from tests import quick

os.environ.setdefault("GRAPHC_CACHE", "0")  # tests leave nothing in the user's cache


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator seeded by the test's own name: a test draws the same numbers alone and in any order."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture
def quick_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    """What graphc compiles in the test is compiled with `tests.quick.OPTIONS`."""
    from graphc.lowering import executable

    monkeypatch.setattr(executable, "PLAIN", quick.OPTIONS)


@pytest.fixture
def declare() -> Iterator[Callable[..., Op]]:
    """`graphc.ops.op` for the length of a test: what it registers, and what eager installs for it, is removed again."""
    from eager.install import functions
    from eager.language import E
    from eager.tensor import Tensor

    before = set(vars(Tensor))
    declared: list[str] = []

    def declare_op(name: str, args: str, **declaration: Any) -> Op:
        declared.append(name)
        return op(name, args, **declaration)

    yield declare_op
    for name in declared:
        if name in OPS:
            OPS.remove(name)
        functions.pop(name, None)
        vars(E).pop(name, None)
    for attribute in set(vars(Tensor)) - before:
        if attribute.rstrip("_") in declared:
            delattr(Tensor, attribute)
