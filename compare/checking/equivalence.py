"""`check`: run a function in every mode and judge the differences."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from compare.cases.binding import bind
from compare.cases.case import Case
from compare.cases.meshes import found as found_on_mesh
from compare.cases.meshes import lifted
from compare.cases.outcome import Outcome
from compare.checking.auditing import audited
from compare.checking.comparison import SECOND, findings_of, repeated
from compare.checking.findings import Finding, Report
from compare.checking.second_order import gradient_case, of_second_order
from compare.judging.tolerance import Verdict
from compare.judging.work import LIMIT
from compare.locating.stages import in_traceback
from compare.modes import EAGER, Mode, modes_named
from compare.modes.meshes import modes_of

UNSTABLE = (
    "eager itself differs from one call to the next: the function depends on something that is not put back, such as "
    "the random numbers of Python or NumPy"
)


def check(
    fn: Callable[..., Any],
    *args: Any,
    modes: Sequence[str | Mode] | None = None,
    seed: int = 0,
    order: int = 1,
    audit: bool = False,
    locate: bool = True,
    limit: float = LIMIT,
    **kwargs: Any,
) -> Report:
    """Whether `fn(*args, **kwargs)` means the same in every mode.

    Compared with eager: exceptions, the structure of the result, shapes, dtypes, values, the gradient of every input
    that requires grad under random cotangents, and what the call changes; in eager and compiled mode also a second
    call. Inputs are the Tensors in `args` and `kwargs`, in any nest, and those that `fn` reaches by itself. Everything
    that `fn` changes is put back after each run: tensors, `.grad`, the default generator, and the Python state that its
    code names.

    modes   names of registered modes, or modes; "passes" is one for each pass of the optimizer. None: the default ones
    seed    of the cotangents
    order   2: the gradients' own gradients are compared as well, under a second set of random cotangents
    audit   whether the calls of `compare.audit` are compared as well
    locate  whether it is found out where modes part: for large programs that takes longer than all else
    limit   how much work a mode may take, or judging it, in numbers that are computed: about a nanosecond each. Beyond
            that the verdict is "no opinion", with this reason; finite differences sample fewer elements

    Tensors on a mesh (DTensors) are on one device in these modes, but in two that there are then besides: "on the mesh"
    runs the function as it is, "compiled on the mesh" as a program for it.

    Raises ValueError for an unknown mode, or another order than 1 and 2, and ArgumentsError, a TypeError, if `fn` does
    not take these arguments. What `fn` itself raises is compared, and named by `report.raised`.

    >>> import eager as torch, compare
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> report = compare.check(lambda x: (x * x).sum(), x)
    >>> report.ok
    True
    """
    if order not in (1, 2):
        raise ValueError(f"order must be 1 or 2, got {order}")
    bind(fn, args, kwargs)
    laid = found_on_mesh(fn, args, kwargs)
    chosen = modes_named(modes, modes_of(laid))
    with lifted(laid):
        return _checked(Case(fn, args, kwargs, seed, locates=locate, limit=limit), chosen, order, audit, seed)


def _checked(case: Case, chosen: Sequence[Mode], order: int, audit: bool, seed: int) -> Report:
    reference = EAGER.run(case)
    findings = _without_unstable(list(compared(case, chosen, reference)))
    if order == 2:
        findings += _second_order(case, chosen, reference)
    names = [m.name for m in chosen]
    if audit:
        report = audited(case)
        names += report.modes
        findings += report.findings
    return Report(case.name, tuple(dict.fromkeys(names)), tuple(findings), seed, _raised(reference.error))


def _without_unstable(findings: list[Finding]) -> list[Finding]:
    """The findings, without culprits for what eager itself does not give twice."""
    unstable = {f.what.removeprefix(SECOND) for f in findings if f.mode == EAGER.name and f.what.startswith(SECOND)}

    def seen(f: Finding) -> Finding:
        if f.verdict is not Verdict.BUG or f.what.removeprefix(SECOND) not in unstable:
            return f
        return dataclasses.replace(f, detail=UNSTABLE, culprit=None)

    return [seen(f) for f in findings]


def _raised(error: Exception | None) -> str:
    """An exception with the user's line; "" if there is none."""
    if error is None:
        return ""
    place = in_traceback(error)
    where = f" ({place.where})" if place is not None else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{where}"


def compared(case: Case, modes: Sequence[Mode], reference: Outcome) -> Iterator[Finding]:
    """Run the case in each mode and compare with `reference`, eager's outcome."""
    for mode in modes:
        outcome = reference if mode is EAGER else mode.run(case)
        yield from findings_of(case, mode, reference, outcome)
        if mode.repeats and outcome.error is None:
            yield from repeated(case, mode, outcome, mode.run(case))


def _second_order(case: Case, modes: Sequence[Mode], reference: Outcome) -> Iterator[Finding]:
    gradients = None if reference.error is not None else gradient_case(case, reference)
    if gradients is None:
        yield from (Finding(m.name, "second gradients", Verdict.NO_OPINION, "nothing to differentiate") for m in modes)
        return
    yield from map(of_second_order, compared(gradients, modes, EAGER.run(gradients)))
