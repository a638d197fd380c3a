"""Sessions: several calls of functions, with changes between them, run eagerly and compiled.

A call alone does not show whether a compiled function notices what has changed since it was traced, whether its results
share the memory that they should, or whether the random generator goes on as it should. A session does: a function of
`compile` that yields whatever is to be compared. It runs as it is written, in each mode from the beginning.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from compare.cases.outcome import flatten, is_number, same_structure
from compare.checking.findings import Finding, Report
from compare.judging.tolerance import Verdict, judge, same_bits
from compare.judging.yardstick import stand_in
from compare.locating.culprit import Culprit
from compare.locating.surroundings import RANDOM, STALE, STATE, without_chance
from eager.core.tensor import Tensor
from eager.rng.sampling import default_generator
from graphc.compiling.decorator import compile
from graphc.lowering.cache import uncached
from graphc.ops.aval import aval_of

Compile = Callable[[Callable[..., Any]], Callable[..., Any]]
Session = Callable[[Compile], Iterable[Any]]
MODE = "compiled"


class Step(NamedTuple):
    """What a session has yielded, or raised at the end."""

    structure: Any
    arrays: dict[str, np.ndarray]
    requires_grad: dict[str, bool]
    error: str = ""


def replay(session: Session, seed: int = 0) -> Report:
    """Whether `session(graphc.compile)` yields what `session` yields of the functions themselves.

    A difference is put down to random numbers if it goes away where all random bits are zero, to the program of an
    earlier call if functions that are compiled anew for each call do not make it, and else to functionalization.
    """
    name = getattr(session, "__name__", "session")
    found = list(_differences(_steps(session, compile, seed), _steps(session, _as_it_is, seed)))
    culprit = Culprit(_part(session, seed)) if any(f.verdict is Verdict.BUG for f in found) else None
    findings = tuple(replace(f, culprit=culprit) if f.verdict is Verdict.BUG else f for f in found)
    return Report(name, ("eager", MODE), findings, seed)


def _part(session: Session, seed: int) -> str:
    with without_chance():
        if not _differs(session, compile, seed):
            return RANDOM
    return STATE if _differs(session, _anew, seed) else STALE


def _differs(session: Session, how: Compile, seed: int) -> bool:
    found = _differences(_steps(session, how, seed), _steps(session, _as_it_is, seed))
    return any(f.verdict is Verdict.BUG for f in found)


def _as_it_is(fn: Callable[..., Any]) -> Callable[..., Any]:
    return fn


def _anew(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        with uncached():  # nor one that was kept on disk
            return compile(fn)(*args, **kwargs)

    return call


def _steps(session: Session, how: Compile, seed: int) -> list[Step]:
    state = default_generator.get_state()
    default_generator.manual_seed(seed)
    steps: list[Step] = []
    try:
        for value in session(how):
            steps.append(_step(value))
    except Exception as error:  # which is compared, too
        steps.append(Step(None, {}, {}, f"{type(error).__name__}: {' '.join(str(error).split())}"))
    finally:
        default_generator.set_state(state)
    return steps


def _step(value: Any) -> Step:
    structure, leaves = flatten(value, lambda x: isinstance(x, Tensor) or is_number(x))
    tensors = {label: leaf for label, leaf in leaves.items() if isinstance(leaf, Tensor)}
    arrays = {label: np.array(leaf._array() if label in tensors else leaf) for label, leaf in leaves.items()}
    return Step(structure, arrays, {label: t.requires_grad for label, t in tensors.items()})


def _differences(found: list[Step], expected: list[Step]) -> Iterator[Finding]:
    for k in range(max(len(found), len(expected))):
        if k >= len(found) or k >= len(expected) or found[k].error or expected[k].error:
            yield _of_errors(k, *(steps[k] if k < len(steps) else None for steps in (found, expected)))
            return
        yield from _of_values(k, found[k], expected[k])


def _of_errors(k: int, found: Step | None, expected: Step | None) -> Finding:
    raised, wanted = ("nothing more" if s is None else s.error or "a value" for s in (found, expected))
    verdict = Verdict.IDENTICAL if raised.partition(":")[0] == wanted.partition(":")[0] else Verdict.BUG
    return Finding(MODE, f"step {k + 1}: exception", verdict, f"{raised}, eager {wanted}")


def _of_values(k: int, found: Step, expected: Step) -> Iterator[Finding]:
    if not same_structure(found.structure, expected.structure):
        yield Finding(MODE, f"step {k + 1}: structure", Verdict.BUG, f"{found.structure!r}, {expected.structure!r}")
        return
    if found.requires_grad != expected.requires_grad:
        detail = f"{found.requires_grad}, eager has {expected.requires_grad}"
        yield Finding(MODE, f"step {k + 1}: requires_grad", Verdict.BUG, detail)
    for label, value in expected.arrays.items():
        what, other = f"step {k + 1}: {label}", found.arrays[label]
        if aval_of(other) != aval_of(value):
            yield Finding(MODE, what, Verdict.BUG, f"{aval_of(other)}, eager has {aval_of(value)}")
        elif same_bits(other, value):
            yield Finding(MODE, what, Verdict.IDENTICAL)
        else:
            judgement = judge(other, value, *stand_in(value))
            yield Finding(MODE, what, judgement.verdict, judgement.detail)
