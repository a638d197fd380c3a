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
from compare.checking.equivalence import check
from compare.checking.findings import Finding, Report
from compare.judging.simulated import noise_in, runs
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
    earlier call if functions that are compiled anew for each call do not make it, and else to what `check` finds in a
    call, or to functionalization.
    Sessions of eager functions whose ops round at random say what rounding explains: of what is nothing but rounding
    an optimizer may make an update of full size.
    """
    name = getattr(session, "__name__", "session")
    found = list(_compared(session, compile, seed))
    culprit = _culprit(session, seed) if any(f.verdict is Verdict.BUG for f in found) else None
    findings = tuple(replace(f, culprit=culprit) if f.verdict is Verdict.BUG else f for f in found)
    return Report(name, ("eager", MODE), findings, seed)


def _culprit(session: Session, seed: int) -> Culprit:
    with without_chance():
        if not _differs(session, compile, seed):
            return Culprit(RANDOM)
    return (_in_calls(session, seed) or Culprit(STATE)) if _differs(session, _anew, seed) else Culprit(STALE)


def _in_calls(session: Session, seed: int) -> Culprit | None:
    """What is wrong in a call as such, the first such thing."""
    found: list[Culprit] = []

    def checked(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            if not found:
                report = check(fn, *args, modes=[MODE], **kwargs)
                found.extend(f.culprit for f in report.findings if f.culprit is not None)
            return fn(*args, **kwargs)

        return call

    _steps(session, checked, seed)
    return found[0] if found else None


def _differs(session: Session, how: Compile, seed: int) -> bool:
    return any(f.verdict is Verdict.BUG for f in _compared(session, how, seed))


def _compared(session: Session, how: Compile, seed: int) -> Iterator[Finding]:
    def eagerly() -> list[Step]:
        return _steps(session, lambda fn: fn, seed)

    return _differences(_steps(session, how, seed), eagerly(), functools.cache(functools.partial(runs, eagerly)))


def _anew(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        with uncached():  # nor one that was kept on disk
            return compile(fn)(*args, **kwargs)

    return call


def _steps(session: Session, how: Compile, seed: int) -> list[Step]:
    steps: list[Step] = []
    with default_generator.forked():
        default_generator.manual_seed(seed)
        try:
            for value in session(how):
                steps.append(_step(value))
        except Exception as error:  # which is compared, too
            steps.append(Step(None, {}, {}, f"{type(error).__name__}: {' '.join(str(error).split())}"))
    return steps


def _step(value: Any) -> Step:
    structure, leaves = flatten(value, lambda x: isinstance(x, Tensor) or is_number(x))
    tensors = {label: leaf for label, leaf in leaves.items() if isinstance(leaf, Tensor)}
    arrays = {label: np.array(leaf._array() if label in tensors else leaf) for label, leaf in leaves.items()}
    return Step(structure, arrays, {label: t.requires_grad for label, t in tensors.items()})


def _differences(found: list[Step], expected: list[Step], others: Callable[[], list[Any]]) -> Iterator[Finding]:
    """others: the steps of sessions that round otherwise"""
    for k in range(max(len(found), len(expected))):
        if k >= len(found) or k >= len(expected) or found[k].error or expected[k].error:
            yield _of_errors(k, *(steps[k] if k < len(steps) else None for steps in (found, expected)))
            return
        yield from _of_values(k, found[k], expected[k], others)


def _of_errors(k: int, found: Step | None, expected: Step | None) -> Finding:
    raised, wanted = ("nothing more" if s is None else s.error or "a value" for s in (found, expected))
    verdict = Verdict.IDENTICAL if raised.partition(":")[0] == wanted.partition(":")[0] else Verdict.BUG
    return Finding(MODE, f"step {k + 1}: exception", verdict, f"{raised}, eager {wanted}")


def _of_values(k: int, found: Step, expected: Step, others: Callable[[], list[Any]]) -> Iterator[Finding]:
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
            if judgement.verdict is Verdict.BUG:
                noise = noise_in([steps[k].arrays.get(label) for steps in others() if k < len(steps)], value)
                judgement = judgement if noise is None else judge(other, value, value, noise)
            yield Finding(MODE, what, judgement.verdict, judgement.detail)
