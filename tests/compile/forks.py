"""Forks a process that computes in several threads, at random moments, and asks each child to do all that works there.

    python -m tests.compile.forks count seed

Prints, for each child that did not end well, what it said; a child that hangs is ended after `PATIENCE`.
"""

from __future__ import annotations

import os
import random
import select
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import eager as torch
import graphc
from graphc.errors import ForkedError

PATIENCE = 120.0  # seconds, after which a child that is silent is one that hangs
LARGE = torch.ones(300, 300)  # products of this size are shared among XLA's threads


@graphc.compile
def small(x: Any) -> Any:
    return (x * 2 + 1).sum()


@graphc.compile
def large(x: Any) -> Any:
    return (x @ x).tanh() @ x


class Background:
    """Threads that compile, run and differentiate until the end."""

    def __init__(self):
        self._ending = threading.Event()
        works = [self._compiles, self._runs, self._differentiates, self._trains]
        self._threads = [threading.Thread(target=self._forever, args=(work,), daemon=True) for work in works]
        for thread in self._threads:
            thread.start()

    def _forever(self, work: Callable[[], None]) -> None:
        while not self._ending.is_set():
            work()

    def end(self) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    @staticmethod
    def _compiles() -> None:
        shift = random.random()
        graphc.compile(lambda x: (x * shift).sin().sum())(torch.ones(3))

    @staticmethod
    def _runs() -> None:
        large(LARGE).sum().item()

    @staticmethod
    def _differentiates() -> None:
        x = torch.ones(50, 50, requires_grad=True)
        (x @ x).tanh().sum().backward()

    @staticmethod
    def _trains() -> None:
        w = torch.ones(20, requires_grad=True)
        optimizer = torch.optim.Adam([w], lr=0.1)

        @graphc.compile
        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = (w * x).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        for _ in range(5):
            step(torch.ones(20))


def in_child(state: Any, expected: np.ndarray, program: Any) -> None:
    """What works in a child, and what is refused at once. Raises AssertionError for anything else."""
    x = torch.ones(40, 40, requires_grad=True)
    (x @ x).sum().backward()
    assert x.grad.tolist() == [[80.0] * 40] * 40
    torch.manual_seed(3)
    assert torch.rand(2).shape == (2,)
    np.testing.assert_array_equal(state.numpy(), expected)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert small(torch.ones(3)).item() == 9
        assert small(torch.ones(7)).item() == 21
        graphc.enable()
        assert large(LARGE).shape == (300, 300)
        y = graphc.compile(lambda x: x * 3)(x)
        y.sum().backward()
    assert [w.category for w in said] == [RuntimeWarning], said
    assert x.grad[0, 0].item() == 83
    for refused in (lambda: program(torch.ones(3)), lambda: graphc.lower(program.graph), program.compile):
        try:
            refused()
        except ForkedError as error:
            assert "spawn" in str(error)
        else:
            raise AssertionError("XLA was called")


def child(work: Callable[[], None], bare: bool = False) -> str:
    """What is wrong with a child that does `work`; "" if it ended well. `bare`: it ends as a program does."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = ""
        try:
            work()
        except BaseException:
            said = traceback.format_exc()
        os.write(writing, said.encode()[-4000:] or b"fine")
        if bare:
            sys.exit(0)
        os._exit(0)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], PATIENCE)
    said = os.read(reading, 4096).decode() if ready else "hangs"
    if ready and bare:
        ready, _, _ = select.select([reading], [], [], PATIENCE)  # its end closes the pipe
        said = said if ready else "hangs at its end"
    if not ready:
        os.kill(pid, 9)
    os.close(reading)
    _, status = os.waitpid(pid, 0)
    return "" if said == "fine" and status == 0 else f"status {status}: {said}"


def main(count: int, seed: int) -> None:
    warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
    rng = random.Random(seed)
    small(torch.ones(3)), large(LARGE)
    state = large(LARGE)
    expected = np.array(large(LARGE).numpy())
    program = graphc.lower(graphc.trace(lambda x: x * 2, torch.ones(3)))
    program(torch.ones(3))
    background = Background()
    for k in range(count):
        for _ in range(rng.randrange(20_000)):  # the threads get on
            pass
        if problem := child(partial(in_child, state, expected, program), bare=k % 4 == 3):
            print(f"fork {k}: {problem}")
        state = large(LARGE)  # may still be computed when the next child is forked
    background.end()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
