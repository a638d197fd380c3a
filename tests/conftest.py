"""What every test shares: a seeded random generator, and ops that a test declares for itself."""

from __future__ import annotations

import faulthandler
import gc
import logging
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

import eager as torch
from graphc.ops import OPS, Op, op
from tests import examples, reports

os.environ.setdefault("GRAPHC_CACHE", "0")  # tests leave nothing in the user's cache
os.environ.setdefault("JAX_PLATFORMS", "cpu")  # which rounds as NumPy does; `make test-gpu` looks at other devices


LONG = frozenset(Path(__file__).with_name("long.txt").read_text().splitlines())


def pytest_configure(config: pytest.Config) -> None:
    """Workers of pytest-xdist send fewer reports, and files without examples are not searched for them."""
    config.pluginmanager.register(examples)
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(reports)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests of `long.txt` as deep."""
    if item.nodeid in LONG:
        item.add_marker(pytest.mark.deep)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With `GRAPHC_TEST_ORDER=n`, tests run in order number n: by a digest of their names, so that workers agree."""
    order = os.environ.get("GRAPHC_TEST_ORDER", "")
    if order:
        items.sort(key=lambda item: zlib.crc32(f"{order} {item.nodeid}".encode()))


def pytest_sessionfinish() -> None:
    """What remains to be done, and what other programs do with this process, takes as long as it takes."""
    faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Nothing of what is collected is garbage: to look for some took a third of the time.

    Nor is what is there before the first test looked at in each garbage collection later.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def seed_of(item: pytest.Item) -> int:
    """A number that follows from the name of a test, and `GRAPHC_TEST_SEED`."""
    return zlib.crc32(f"{os.environ.get('GRAPHC_TEST_SEED', '')}{item.nodeid}".encode())


HANGS, GRACE = 900, 60  # seconds
watched_since = -float("inf")


def watch(config: pytest.Config) -> None:
    """A test that takes longer than `HANGS` ends its worker, with the stacks of its threads, and is reported as failed.

    pytest's own option starts a thread for each test, and waits for its end. This one starts one each `GRACE`.
    """
    global watched_since
    if time.monotonic() > watched_since + GRACE:
        watched_since = time.monotonic()
        faulthandler.dump_traceback_later(HANGS + GRACE, exit=True, file=config.stash[fault_handler_stderr_fd_key])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """What graphc compiles in a test is compiled with `tests.quick.OPTIONS`, in one marked `own_xla` with XLA's own
    options, and in one marked `on_numpy` it runs on NumPy. With `GRAPHC_TEST_XLA=1` all have XLA's own options.

    `torch.randn` and the like draw the same numbers in a test, alone and in any order. A fixture that every test has
    would take longer than many a test.
    """
    from tests import quick  # starts JAX, which the process that only tells others what to run does not need

    watch(item.config)
    torch.manual_seed(seed_of(item))
    with pytest.MonkeyPatch.context() as patch:
        if not os.environ.get("GRAPHC_TEST_XLA"):
            if item.get_closest_marker("on_numpy"):
                patch.setattr("graphc.lowering.executable.Executable._compilation", quick.compilation)
            if not item.get_closest_marker("own_xla"):
                patch.setattr("graphc.lowering.stages.PLAIN", quick.OPTIONS)
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test that fails because XLA has no float16 on this processor is skipped."""
    try:
        return (yield)
    except Exception as error:
        from tests import quick

        if quick.lacks_half(error):
            pytest.skip("XLA converts float16 by instructions that this processor has not (F16C)")
        raise


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator seeded by the test's own name: a test draws the same numbers alone and in any order.

    With `GRAPHC_TEST_SEED=n`, other numbers.
    """
    return np.random.default_rng(seed_of(request.node))


@pytest.fixture
def logged() -> Iterator[list[logging.LogRecord]]:
    """What is logged during a test. pytest's plugin for it is off: it would take a third of the time of a short one."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logging.root.addHandler(handler)
    yield records
    logging.root.removeHandler(handler)


@pytest.fixture
def einops_loaded_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """einops keeps what it takes for PyTorch: other tests are given another one."""

    def loaded() -> list[str]:
        return [name for name in sys.modules if name.partition(".")[0] == "einops"]

    for name in loaded():
        monkeypatch.delitem(sys.modules, name)
    yield
    for name in loaded():
        del sys.modules[name]


@pytest.fixture
def undeclared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test declares with `graphc.ops.op`, and what eager installs for it, is removed when the test ends."""
    from eager.core.tensor import Tensor
    from eager.engine.language import E
    from eager.surface.operators import functions

    before = set(vars(Tensor))
    declared: list[str] = []
    add = OPS.add

    def added(new: Op) -> Op:
        declared.append(new.name)
        return add(new)

    monkeypatch.setattr(OPS, "add", added)
    yield
    for name in declared:
        if name in OPS:
            OPS.remove(name)
        functions.pop(name, None)
        vars(E).pop(name, None)
    for attribute in set(vars(Tensor)) - before:
        if attribute.rstrip("_") in declared:
            delattr(Tensor, attribute)


@pytest.fixture
def declare(undeclared: None) -> Callable[..., Op]:
    """`graphc.ops.op`, for the length of a test."""
    return op
