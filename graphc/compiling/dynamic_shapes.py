"""`graphc.compile(dynamic=)`: which sizes are symbolic in which trace, and the programs that came of it.

A *family* is what one trace with symbolic sizes has given: a program for each size, made when it is first called for.
Signatures that differ in the sizes of first dims only have their families in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, final

from eager.core.tensor import Tensor
from graphc.capture.location import user_line
from graphc.capture.symbolic_program import SymbolicProgram
from graphc.compiling.specializations import Specialization
from graphc.ops.dims import Dim, Sizes
from graphc.ops.forms import LEAST

MOST_FAMILIES = 8  # for calls that differ in sizes only; beyond that each size is traced by itself
MOST_CLASSES = 16  # of calls, told apart by more than sizes, that are kept in mind
SAME_GRAPH = "the graph of an earlier trace, for {sizes}"
TOOK = "takes a size as a plain number, at {where} ({condition})"
RULES = "an autograd.Function or a hook runs Python for the gradients"
FAILED = "with symbolic sizes it raised {error}"
TOO_MANY = f"there are {MOST_FAMILIES} graphs for other conditions on the sizes already"


class Family(NamedTuple):
    """One trace with symbolic sizes. `first` is its program for the sizes of that call."""

    symbolic: SymbolicProgram
    first: Specialization

    def reason(self, sizes: Mapping[str, int]) -> str:
        """Why there is a program for `sizes`."""
        return SAME_GRAPH.format(sizes=", ".join(f"{name}={n}" for name, n in sizes.items()))


@final
class ShapeClass:
    """The calls that differ in the sizes of first dims only.

    seen      the sizes of the calls that were traced
    families  the latest first
    refused   why there will be no more; "" if there may be
    """

    def __init__(self):
        self.seen: list[tuple[int, ...]] = []
        self.families: list[Family] = []
        self.refused = ""


@final
class DynamicShapes:
    """The families of one compiled function. `wanted` is the option `dynamic`."""

    def __init__(self, wanted: bool | None):
        self._wanted = wanted
        self._classes: dict[Any, ShapeClass] = {}

    def of(self, signature: Any) -> list[Family]:
        """The families that a call with this signature may belong to."""
        if self._wanted is False:
            return []
        found = self._classes.get(class_of(signature))
        return [] if found is None else found.families

    def batches(self, signature: Any, tensors: list[Tensor]) -> tuple[Sizes, dict[int, Dim]] | None:
        """The sizes that are to be symbolic in the trace of a call: by argument position. None if none are.

        Arguments whose sizes have always been the same have one size in common.
        """
        if self._wanted is False:
            return None
        key = class_of(signature)
        known = self._classes.setdefault(key, ShapeClass())
        while len(self._classes) > MOST_CLASSES:
            del self._classes[next(iter(self._classes))]
        now = tuple(int(t._d.shape[0]) if t._d.shape else 0 for t in tensors)
        known.seen = [*(seen for seen in known.seen[-MOST_FAMILIES:] if seen != now), now]
        if known.refused:
            return None
        if len(known.families) >= MOST_FAMILIES:  # those that await another state of Python go first
            known.families = [f for f in known.families if f.first.environment.holds()]
        if (
            sum(not f.first.program.checks.decisions for f in known.families) >= MOST_FAMILIES
        ):  # paths have their own bound
            known.refused = TOO_MANY
            return None
        sizes, names, found = Sizes(user_line), {}, {}
        for position, column in enumerate(zip(*known.seen, strict=True)):
            if column[-1] >= LEAST and (self._wanted or len(set(column)) > 1):
                if column not in names:
                    names[column] = sizes.new(column[-1])
                found[position] = names[column]
        return (sizes, found) if found else None

    def add(self, signature: Any, symbolic: SymbolicProgram, specialization: Specialization) -> None:
        """Note what a trace with symbolic sizes has given: a family, unless it holds for one size only."""
        known = self._classes[class_of(signature)]
        sizes = symbolic.sizes
        if specialization.program.recorded.rules is not None:
            known.refused = RULES
        elif sizes.taken and sizes.fixed() >= sizes.hints.keys():
            where, condition = next(iter(sizes.taken.items()))
            known.refused = TOOK.format(where=where or "an unknown line", condition=condition)
        else:
            known.families.insert(0, Family(symbolic, specialization))

    def refuse(self, signature: Any, error: BaseException) -> None:
        """No more traces with symbolic sizes for such calls."""
        known = self._classes[class_of(signature)]
        known.families.clear()
        known.refused = FAILED.format(error=f"{type(error).__name__}: {error}")

    def described(self) -> Iterator[str]:
        """What `explain` says: of each family its conditions, and why there are not more."""
        for known in self._classes.values():
            for family in known.families:
                conditions = [str(c) for c in family.symbolic.sizes.conditions]
                names = ", ".join(family.symbolic.sizes.hints)
                yield f"one graph for any {names}" + (f" with {' and '.join(conditions)}" if conditions else "")
            if known.refused:
                yield f"a graph for each size: {known.refused}"


def class_of(signature: Any) -> Any:
    """The signature without the sizes of first dims that may be symbolic."""
    found, tensor = list(signature), False
    for k, item in enumerate(signature):
        if tensor and isinstance(item, tuple) and item and item[0] >= LEAST:
            found[k] = (None, *item[1:])
        tensor = isinstance(item, type) and issubclass(item, Tensor)
    return tuple(found)
