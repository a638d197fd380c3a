"""Wrong random numbers: drawn in another order, too seldom, too often, or from another generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import eager as torch
import graphc
from compare.locating.surroundings import RANDOM
from compare.selftest.fault import Fault, of_part
from compare.selftest.planting import Plant, attribute, wrapped
from compare.selftest.trials import calls, in_turn, numbers, program, session, tensor
from eager.rng.sampling import default_generator
from graphc.capture.flow import draws
from graphc.capture.sources import Draw
from graphc.capture.trace_state import TraceState
from graphc.capture.tracer import Tracer
from graphc.execution.call_code import CallCode

_fault = of_part("random numbers", RANDOM)


def _input(wrong: Callable[[Draw], Draw]) -> Plant:
    """Each draw of a program becomes a `wrong` one."""
    sound = TraceState.input

    def made(self: TraceState, name: str, aval: Any, source: Any) -> Any:
        return sound(self, name, aval, wrong(source) if isinstance(source, Draw) else source)

    return lambda: attribute(TraceState, "input", made)


def _kept(source: Draw) -> Draw:
    """What was drawn first is used again."""
    found: list[np.ndarray] = []

    def draw() -> np.ndarray:
        if not found:
            found.append(source.draw())
        return found[0]

    return Draw(draw, source.generator)


def _doubled(source: Draw) -> Draw:
    def draw() -> np.ndarray:
        source.draw()
        return source.draw()

    return Draw(draw, source.generator)


def _put_back(source: Draw) -> Draw:
    """The generator is left as it was."""

    def draw() -> np.ndarray:
        state = source.generator.get_state()
        found = source.draw()
        source.generator.set_state(state)
        return found

    return Draw(draw, source.generator)


def _reversed(source: Draw) -> Draw:
    return Draw(lambda: np.ascontiguousarray(np.flip(source.draw())), source.generator)


def _of_default(sound: Any) -> Any:
    """Every draw is made from the default generator."""

    def random(self: Tracer, draw: Any, shape: Any, dtype: Any, generator: Any, like: Any = None) -> Any:
        def drawn(shape: Any) -> Any:
            state, own = generator.get_state(), default_generator.get_state()
            generator.set_state(own)
            found = draw(shape)
            default_generator.set_state(generator.get_state())
            generator.set_state(state)
            return found

        return sound(self, draw if generator is default_generator else drawn, shape, dtype, generator, like)

    return random


def _last_first(sound: Any) -> Any:
    """A program draws in the reverse order."""

    def fetched(self: CallCode) -> list[str]:
        lines = sound(self)
        places = [k for k, line in enumerate(lines) if "drawn" in line]
        for k, line in zip(places, reversed([lines[k] for k in places]), strict=True):
            lines[k] = line
        return lines

    return fetched


class _SameSteps(draws._Steps):
    """All steps of a loop get what the first has drawn."""

    def array(self, k: int) -> np.ndarray:
        found = super().array(k)
        return np.broadcast_to(found[:1], found.shape).copy()


_x = numbers(4)


def _two_draws(x: Any) -> Any:
    return x * torch.rand(4) + torch.rand(2).sum()


def _several_calls(compile: Any) -> Iterator[Any]:
    f = compile(_two_draws)
    for _ in range(3):
        yield f(torch.from_numpy(_x)), torch.rand(2)


def _own_generator(compile: Any) -> Iterator[Any]:
    own = torch.Generator().manual_seed(7)
    f = compile(lambda x: x + torch.rand(4, generator=own))
    for _ in range(3):
        yield f(torch.from_numpy(_x)), torch.rand(1)


def _noisy_steps(x: Any) -> Any:
    return graphc.scan(lambda c, a: (c + a * torch.rand(()), c * torch.rand(())), x[0] * 0, x)[1]


def _branch_on_noise(compile: Any) -> Iterator[Any]:
    def choose(x: Any) -> Any:
        noise = torch.rand(4)
        return x + noise if noise.sum() > 2 else x - noise * 2

    f = compile(choose)
    for _ in range(8):
        yield f(torch.from_numpy(_x)), torch.rand(1)


_calls = in_turn(program(_two_draws, _x), session(_several_calls))

FAULTS: tuple[Fault, ...] = (
    _fault("drawn in the reverse order", wrapped(CallCode, "_fetched", _last_first), _calls),
    _fault("the first numbers used again", _input(_kept), _calls),
    _fault("a dropout mask used again", _input(_kept), calls(
        lambda x: torch.nn.functional.dropout(x, 0.5), *[(tensor(32),)] * 4)),
    _fault("drawn twice", _input(_doubled), _calls),
    _fault("the generator does not go on", _input(_put_back), _calls),
    _fault("reversed", _input(_reversed), calls(
        lambda x: torch.bernoulli(x) + torch.randn(4) + torch.randint(0, 9, (4,)), *[(tensor(4) / 2,)] * 3)),
    _fault("from the default generator", wrapped(Tracer, "random", _of_default), session(_own_generator)),
    _fault("the same in all steps of a loop", lambda: attribute(draws, "_Steps", _SameSteps),
           in_turn(program(_noisy_steps, _x), calls(_noisy_steps, *[(tensor(4),)] * 3))),
    _fault("the states of generators are not kept", lambda: attribute(CallCode, "_generators", lambda self: []),
           session(_branch_on_noise)),
)  # fmt: skip
