"""An interrupt at any moment of a call: all is as before the call, or as after it, and the next call is right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.compile import interrupted
from tests.compile.interrupt_programs import PROGRAMS, branches, gradients, views, wide
from tests.compile.interrupted import Subject, sweep

# what Python throws away while it is being interrupted may be interrupted, too
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
SETTLED = 8  # calls, after which no program is traced anew


class Alarm(Exception):
    """What a user's handler of a signal raises."""


@pytest.mark.parametrize("make", [views, wide, branches, gradients], ids=lambda make: make.__name__)
def test_hits(make: Callable[[], Subject]):
    assert not sweep(make, SETTLED, 12, fresh=False, error=KeyboardInterrupt)


@pytest.mark.parametrize("make", [views, gradients], ids=lambda make: make.__name__)
def test_first_calls(make: Callable[[], Subject]):
    assert not sweep(make, 0, 4, fresh=True, error=KeyboardInterrupt)


@pytest.mark.deep
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, Alarm], ids=lambda error: error.__name__)
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_every_hit(make: Callable[[], Subject], error: type[BaseException]):
    assert not sweep(make, SETTLED, 400 if error is KeyboardInterrupt else 60, fresh=False, error=error)


@pytest.mark.deep
@pytest.mark.parametrize("warm", [0, 1])
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_every_first_call(make: Callable[[], Subject], warm: int):
    assert not sweep(make, warm, 40, fresh=True, error=KeyboardInterrupt)


def test_what_is_half_done_is_found():
    def make() -> Subject:
        state = [0, 0]

        def add(k: int) -> None:
            state[0] += 1
            len(state)
            state[1] += 1

        return Subject(add, lambda: list(state))

    (found,) = sweep(make, 0, 100, fresh=True, error=KeyboardInterrupt)
    assert "neither before nor after" in found


def test_states_are_told_apart():
    assert interrupted.same([{"a": 1.0}], [{"a": 1.0}])
    assert not interrupted.same([{"a": 1.0}], [{"a": 2.0}])
