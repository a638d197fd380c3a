"""The mode that asks whether processes which share a batch do together what one process does with the whole batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from compare.cases.case import Case
from compare.cases.outcome import Objected, Outcome
from compare.judging.shares import MEAN, ODD, SCALED, SUM, WHOLE, Relation, near, relation
from compare.judging.tolerance import Verdict
from compare.locating.culprit import Culprit
from compare.locating.shares import in_shares
from eager.core.tensor import Tensor
from eager.distributed import all_gather_object, get_world_size, is_initialized
from eager.processes.world import alone
from eager.rng.sampling import default_generator
from graphc.capture.tree import map_tensors, tensors_of

ONE_PROCESS = "there is one process: start several, by `graphc launch`"
NOT_SHARED = "the ranks do not have the same: {who}; a tensor that is a share of the batch has to be an argument"
RANDOM = "it draws random numbers, and the whole batch has other ones"
SAME_STREAM = "the generators of {who} begin alike: they draw the same masks for other samples"
OTHER_STREAM = "the generators of {who} do not begin alike"


class _Seen(NamedTuple):
    """What one rank has seen."""

    before: Mapping[str, np.ndarray]
    args: Sequence[np.ndarray]
    outcome: Mapping[str, np.ndarray]
    error: str
    stream: bytes
    draws: bool


@final
class Ranks:
    """Each rank runs the function on its share of the batch, and alone on the whole batch, as one process would.

    Tensors among the arguments that differ between ranks are shares: along their first dim, in the order of ranks. All
    else that the function reads has to be the same on all ranks, before the call and after it, and to be what one
    process makes of the whole batch. Results may be shares, or terms of a mean or sum.

    whole  the arguments of one process: then it is also asked whether the ranks have each of its rows once
    draws  "apart": ranks must not draw the same random numbers, as masks of dropout; "alike": they must
    """

    name, wide, repeats = "ranks", False, False

    def __init__(self, whole: Sequence[Any] | None = None, draws: str | None = None):
        if draws not in (None, "apart", "alike"):
            raise ValueError(f"draws must be 'apart', 'alike' or None, got {draws!r}")
        self._whole, self._draws = whole, draws

    def run(self, case: Case) -> Outcome:
        if not is_initialized() or get_world_size() == 1:
            return Outcome(silent=ONE_PROCESS)
        # once more: what an optimizer remembers is made by the first capture
        case = Case(case.fn, case.args, case.kwargs, case.seed, locates=case.locates, limit=case.limit)
        seen = _gathered(_own(case))
        if any(s.error for s in seen):
            raised = {f"rank {k}": s.error for k, s in enumerate(seen)}
            found = [] if all(raised.values()) else [_bug("exception", f"not on all ranks: {raised}", "rank")]
            return Outcome(objections=tuple(found))
        found = [*self._generators(seen), *_rows(case, self._whole, seen), *_before(seen)]
        together = _Together(case, seen)
        return Outcome(objections=(*found, *together.objections()))

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        return None  # objections have theirs

    def _generators(self, seen: Sequence[_Seen]) -> Iterator[Objected]:
        drawing = {k: s.stream for k, s in enumerate(seen) if s.draws}
        if self._draws is None or len(drawing) < 2:
            return
        same = [k for k, stream in drawing.items() if list(drawing.values()).count(stream) > 1]
        if self._draws == "apart" and same:
            yield _bug("random numbers", SAME_STREAM.format(who=_ranks(same)), "seed")
        if self._draws == "alike" and len(set(drawing.values())) > 1:
            yield _bug("random numbers", OTHER_STREAM.format(who=_ranks(list(drawing))), "seed")


def _own(case: Case) -> _Seen:
    """What this rank sees."""
    given = {id(t) for t in case.tensors}
    before = {i.name: np.array(i.tensor._read()) for i in case.inputs if id(i.tensor) not in given}
    with case.preserved():
        stream = default_generator.bits(2).tobytes()
    outcome = case.observe(case.fn)
    args = [np.array(t._read()) for t in case.tensors]
    error = "" if outcome.error is None else f"{type(outcome.error).__name__}: {outcome.error}"
    draws = outcome.drawn is not None and outcome.drawn != stream
    return _Seen(before, args, {**outcome.values, **outcome.changes}, error, stream, draws)


def _gathered(own: Any) -> list[Any]:
    every: list[Any] = [None] * get_world_size()
    all_gather_object(every, own)
    return every


def _bug(what: str, detail: str, part: str) -> Objected:
    return Objected(what, Verdict.BUG, detail, Culprit(part))


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"


def _before(seen: Sequence[_Seen]) -> Iterator[Objected]:
    """State that is not the same on all ranks before the call."""
    for name, value in seen[0].before.items():
        off = [k for k, s in enumerate(seen) if name in s.before and not _same(s.before[name], value)]
        if off:
            detail = NOT_SHARED.format(who=f"{_ranks(off)} {'have' if len(off) > 1 else 'has'} another than rank 0")
            yield _bug(f"{name} before the call", detail, f"state '{name}'")


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _rows(case: Case, whole: Sequence[Any] | None, seen: Sequence[_Seen]) -> Iterator[Objected]:
    """Rows of the whole batch that no rank has, or that are none of it."""
    if whole is None:
        return
    given = [t._read() for t in tensors_of(tuple(whole))]
    if len(given) != len(seen[0].args):
        raise ValueError(f"whole= has {len(given)} tensors, the arguments have {len(seen[0].args)}")
    batched = [k for k, a in enumerate(given) if any(not _same(s.args[k], a) for s in seen)]

    def rows(arrays: Sequence[np.ndarray]) -> list[bytes]:
        return [b"".join(a[r].tobytes() for a in arrays) for r in range(min((len(a) for a in arrays), default=0))]

    known = rows([given[k] for k in batched])
    held = {(rank, r): row for rank, s in enumerate(seen) for r, row in enumerate(rows([s.args[k] for k in batched]))}
    lines: list[str] = []
    for r, row in enumerate(known):
        who = [rank for (rank, _), other in held.items() if other == row]
        if not who:
            lines.append(f"no rank has row {r}")
        elif len(who) > known.count(row) and len(held) <= len(known):  # an uneven batch is filled up
            lines.append(f"row {r} is on {_ranks(who)}")
    lines += [
        f"row {r} of rank {rank} is none of the whole batch" for (rank, r), row in held.items() if row not in known
    ]
    if lines:
        yield _bug("data order", "; ".join(lines[:6]), "data order")


def _noise(one: Case, label: str) -> np.ndarray | float:
    """What rounding does to a value of the call that has the whole batch."""
    if one.program is None or label not in one.joint.labels:
        return 0.0
    return one.yardstick.noise_of(one.joint.ids[label])


class _Together:
    """What the ranks have made, beside what each makes alone of the whole batch."""

    def __init__(self, case: Case, seen: Sequence[_Seen]):
        self._case, self._seen = case, seen
        shares = [k for k, own in enumerate(seen[0].args) if any(not _same(s.args[k], own) for s in seen)]
        self._joined = {k: np.concatenate([s.args[k] for s in seen]) for k in shares}
        self._random = any(s.draws for s in seen)

    def objections(self) -> Iterator[Objected]:
        case = self._case
        count = iter(range(len(case.tensors)))
        numbers = {id(t): next(count) for t in case.tensors}

        def of_whole(t: Tensor, path: str) -> Tensor:
            joined = self._joined.get(numbers[id(t)])
            return t if joined is None else Tensor._wrap(joined.copy()).requires_grad_(t.requires_grad)

        args = tuple(map_tensors(a, of_whole) for a in case.args)
        kwargs = {name: map_tensors(value, of_whole) for name, value in case.kwargs.items()}
        with alone():
            one = Case(case.fn, args, kwargs, case.seed)
            expected = one.observe(case.fn)
        error = expected.error
        # what one rank raises all have to know, or they wait for it
        raised = _gathered(None if error is None else f"raises {type(error).__name__}: {error}")
        if why := next(filter(None, raised), None):
            yield Objected("everything", Verdict.NO_OPINION, f"one process, with the whole batch, {why}", None)
            return
        arrays = {**expected.values, **expected.changes}
        wrong = [label for label in arrays if not self._right(label, self._found(label, arrays[label]))]
        with alone():
            noise = {label: _noise(one, label) for label in wrong}
        wrong = [k for k in wrong if not self._right(k, self._found(k, arrays[k], noise[k]))]
        where = in_shares(case, one, wrong, _gathered, alone) if case.locates and not self._random else {}
        for label in arrays:
            found = self._found(label, arrays[label])
            if label not in wrong:
                verdict = Verdict.IDENTICAL if found.kind == WHOLE else Verdict.WITHIN_ROUNDING
                yield Objected(label, verdict, "" if found.kind == WHOLE else f"each rank has {found}", None)
            elif self._random and (found.alike or not self._is_state(label)):
                yield Objected(label, Verdict.NO_OPINION, RANDOM, None)
            else:
                detail = self._why(label, found, arrays[label])
                yield Objected(label, Verdict.BUG, detail, where.get(label))

    def _found(self, label: str, whole: np.ndarray, noise: np.ndarray | float = 0.0) -> Relation:
        if any(label not in s.outcome for s in self._seen):
            return Relation(ODD, False)
        return relation([s.outcome[label] for s in self._seen], whole, noise)

    def _right(self, label: str, found: Relation) -> bool:
        """State has to be that of the whole batch; results, arguments and single numbers may be of a share."""
        return found.kind == WHOLE or (not self._is_state(label) and found.kind not in (ODD, SCALED))

    def _is_state(self, label: str) -> bool:
        return label.split(" after")[0].removesuffix(".grad") in self._seen[0].before

    def _why(self, label: str, found: Relation, whole: np.ndarray) -> str:
        parts = [s.outcome.get(label) for s in self._seen]
        n = len(parts)
        lacking = [k for k, part in enumerate(parts) if part is None]
        if lacking:
            return f"{_ranks(lacking)} {'have' if len(lacking) > 1 else 'has'} not changed it, one process does"
        if found.kind in (MEAN, SUM):
            done = "averaged" if found.kind == MEAN else "summed"
            return f"each rank has its own, of its share of the batch: it is not {done} over the ranks"
        if found.kind == SCALED:
            close: Callable[[float], bool] = lambda c: abs(found.factor / c - 1) < 1e-3
            why = (
                ": the mean over the ranks is taken twice" if close(1 / n)
                else ": it is summed over the ranks, not averaged" if close(n) else ""
            )  # fmt: skip
            return f"{found.factor:.4g} times what one process has of the whole batch{why}"
        if found.alike:
            return "not what one process has of the whole batch"
        right = [k for k, part in enumerate(parts) if part is not None and near(part, whole)]
        off = [k for k in range(n) if k not in right]
        return f"the ranks do not have the same: {_ranks(off)} not what one process has" + (
            f", {_ranks(right)} has" if right else ""
        )
