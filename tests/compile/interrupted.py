"""Interrupts at chosen moments of a call, and what must be as it was before the call, or as it is after it.

Python takes notice of a signal, or of an exception that another thread has set, where a function begins and where a
function written in C returns: these moments are counted, so that a sweep depends on no clock.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import eager as torch

# functions of JAX that take whatever is raised in them for an answer, an interrupt as well: `except: return False`
SWALLOWING = {("core.py", "is_constant_dim")}


class Moment:
    """Counts the moments of a call; at number `at`, raises `error`."""

    def __init__(self, at: int | None = None, error: type[BaseException] = KeyboardInterrupt):
        self.seen = 0
        self.raised = False
        self._at = at
        self.error = error

    def _event(self, frame: Any, event: str, arg: Any) -> None:
        if event == "call" or event == "c_return":
            self.seen += 1
            code = frame.f_code
            swallowed = (code.co_filename.rpartition("/")[2], code.co_name) in SWALLOWING
            if self._at is not None and self.seen >= self._at and not (self.raised or swallowed):
                self.raised = True
                raise self.error

    def run(self, call: Callable[[], Any]) -> Any:
        sys.setprofile(self._event)
        try:
            return call()
        finally:
            sys.setprofile(None)


def shown(value: Any) -> Any:
    """A value in a form that can be compared."""
    if isinstance(value, torch.Tensor):
        grad = getattr(value, "grad", None) if value.is_leaf else None
        return value.detach().numpy().copy(), value.requires_grad, None if grad is None else shown(grad)
    if isinstance(value, dict):
        return {name: shown(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(part) for part in value]
    return value


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


class Subject:
    """Something to be interrupted: `function(k)` is call number k, which depends on and changes only what `state()`
    shows, and random numbers."""

    def __init__(self, function: Callable[[int], Any], state: Callable[[], Any]):
        self._function = function
        self._state = state
        self._calls = 0
        self._random = torch.Generator().manual_seed(3).get_state()

    def call(self, moment: Moment | None = None) -> Any:
        """The next call; interrupted, it is still to come unless it has changed everything."""
        torch.set_rng_state(self._random)
        try:
            number = self._calls
            result = self._function(number) if moment is None else moment.run(lambda: self._function(number))
            self._calls += 1
            return shown(result)
        finally:
            self._random = torch.get_rng_state()

    def count(self) -> None:
        """The interrupted call has happened."""
        self._calls += 1

    def state(self) -> Any:
        return [shown(self._state()), shown(self._random)]


def problem(subject: Subject, twin: Subject, moment: Moment) -> str:
    """What is wrong after `subject`, which is as `twin` is, has been interrupted; it is so again if nothing is."""
    before = twin.state()
    expected = twin.call()
    after = twin.state()
    try:
        subject.call(moment)
    except BaseException as error:
        if type(error) is not moment.error:
            return f"{type(error).__name__} in place of the interrupt: {error}"
        now = subject.state()
        if same(now, after):
            subject.count()
            return ""
        if not same(now, before):
            return f"neither before nor after the call: {now} is neither {before} nor {after}"
        try:
            if not same(subject.call(), expected):
                return "the next call has another result"
        except Exception as later:
            return f"the next call fails: {type(later).__name__}: {later}"
    return "" if same(subject.state(), after) else "the next call leaves another state"


def sweep(make: Callable[[], Subject], warm: int, count: int, fresh: bool, error: type[BaseException]) -> list[str]:
    """What is wrong at some `count` moments of the call after `warm` others; of a subject for each if `fresh`."""

    def pair() -> tuple[Subject, Subject]:
        both = make(), make()
        for subject in both:
            for _ in range(warm):
                subject.call()
        return both

    subject, twin = pair()
    counting = Moment()
    subject.call(counting)
    twin.call()
    step = max(1, counting.seen // count)
    found: list[str] = []
    for at in range(1 + step // 2, counting.seen + 1, step):
        if fresh or (found and found[-1].startswith(f"moment {at - step} ")):
            subject, twin = pair()
        if wrong := problem(subject, twin, Moment(at, error)):
            found.append(f"moment {at} of {counting.seen}: {wrong}"[:2000])
    return found
