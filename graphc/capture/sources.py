"""What a captured program reads, changes and returns, besides its graph."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np

from eager.core.tensor import Tensor
from graphc.ops.steps import Step


@final
@dataclass(frozen=True)
class Argument:
    """An input that is tensor number `position` of the call's arguments."""

    position: int


@final
@dataclass(frozen=True, eq=False)
class Captured:
    """An input that is a tensor the function reached by itself. Equal to another that is the same tensor."""

    tensor: Tensor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Captured) and other.tensor is self.tensor

    def __hash__(self) -> int:
        return id(self.tensor)


@final
@dataclass(frozen=True, eq=False)
class Lifted:
    """An input that is read anew, by `get`, at each call: a tensor, or a number of type `kind`, in a lifted place.

    Each place has one, which equals no other: `path`, which is for people, may show several alike.
    """

    path: str
    get: Callable[[], Any]
    kind: type | None


@dataclass(frozen=True)
class Of:
    """What is of the tensor behind another source. Equal to another that is the same of the same."""

    of: Argument | Captured | Lifted


@final
class GradOf(Of):
    """An input, or an effect: its `.grad`."""


@final
class DataOf(Of):
    """An effect: it shows other memory from now on, its own staying as it is."""


@final
class MemoryOf(Of):
    """An input: the whole memory, as a vector, that it shows a part of."""


@final
@dataclass(frozen=True)
class LeafFlag(Of):
    """An effect: it is a leaf, which requires grad from now on, or (no `flag`) not any more."""

    flag: bool


@final
@dataclass(frozen=True)
class PastOf(Of):
    """An effect: a gradient that goes on into the history that it has."""

    keep: bool


@final
@dataclass(frozen=True, eq=False)
class Spare:
    """An input that nobody reads: memory for the program to write an output over.

    take      (): the array; nobody else has it
    restored  (array): where what it held is now, which is still wanted if the program has failed
    """

    take: Callable[[], Any]
    restored: Callable[[Any], None]


@final
@dataclass(frozen=True, eq=False)
class GradsOf:
    """An effect: new gradients of several tensors, side by side in one array.

    give   (array): hands them out
    spare  what they are written over, if anything
    """

    give: Callable[[Any], None]
    spare: Spare | None = None


@final
@dataclass(frozen=True, eq=False)
class Draw:
    """An input that is drawn from a random generator at each call."""

    draw: Callable[[], np.ndarray]
    generator: Any


@final
class Drawn(dict[int, Any]):
    """Random numbers that were needed during a trace; `marks` of the generators that they are from, before.

    The keys are 0 for the first `Draw` among the sources of a program, and so on: unlike the number of an input,
    that of a draw stays when state is packed. They are for the call that is traced, which clears them when it has used
    them: until then an interrupt lets the generators continue as before, and does what is in `undoing`. So does what
    stops the program, for generators and for each of `grads`, which the trace has put where there was none.
    """

    def __init__(self):
        super().__init__()
        self.marks: list[tuple[Any, Any]] = []
        self.undoing: list[Callable[[], None]] = []
        self.grads: list[tuple[Tensor, Tensor]] = []  # (a tensor, its `.grad`)

    def put_back(self) -> None:
        """Let the generators continue as before the trace."""
        for generator, mark in self.marks:
            generator.rewind(mark)
        for tensor, grad in self.grads:
            if tensor._g is grad:
                tensor._g = None

    def interrupted(self) -> None:
        """The call ends here. May be called twice."""
        self.put_back()
        for undo in reversed(self.undoing):
            undo()

    def clear(self) -> None:
        self.marks.clear()
        self.undoing.clear()
        self.grads.clear()
        super().clear()


Owner = Argument | Captured | Lifted
Source = Owner | GradOf | MemoryOf | Draw | Spare


class History(enum.Enum):
    """What autograd knows of a result."""

    NONE = 0  # requires no grad
    LIVE = 1  # can be differentiated
    BROKEN = 2  # backward() raises: what it needs was freed inside the program, or written in place
    LEAF = 3  # a leaf that the program has made


class Effect(NamedTuple):
    """Something the program changes: `target` gets the value of node `id` (None: a `.grad` becomes None, or a flag).

    fresh   a `.grad` becomes another tensor, not the one before with other values: the number of that tensor
    """

    target: Owner | MemoryOf | DataOf | GradOf | GradsOf | PastOf | LeafFlag
    id: int | None
    history: History = History.NONE
    fresh: int | None = None


class Guard(NamedTuple):
    """A condition under which the program is right: `getter()` equals `value`.

    what    names it in messages
    layout  of which tensor's place in NumPy's memory this is; memory of another kind gives None
    """

    getter: Callable[[], Any]
    value: Any
    what: str
    layout: Tensor | None = None


class ArgumentGuard(NamedTuple):
    """A condition on a tensor among the arguments: `getter(tensor)` equals `value`.

    what   names it in messages
    quick  the source of a condition on `t`, the tensor, that is true if this may not hold
    """

    position: int
    getter: Callable[[Tensor], Any]
    value: Any
    what: str
    quick: str = "True"


class Decision(NamedTuple):
    """A value that Python has read: node `id` had `value` (bytes) when the program was traced, in the line `where`.

    counts  the function that has read it for the shape of its result; "" for the user's code
    """

    id: int
    value: bytes
    where: str
    shown: str
    counts: str = ""


@final
@dataclass(frozen=True)
class Computed:
    """Node `id`, in a tensor of its own, of class `kind`. Results that are the same tensor have the same number."""

    id: int
    tensor: int
    kind: type[Tensor] = field(default=Tensor, compare=False)


@final
@dataclass(frozen=True)
class Given:
    """A tensor that was there before the call, or the `.grad` of one as it is after the call."""

    source: Owner | GradOf | MemoryOf


@final
@dataclass(frozen=True)
class ViewOf:
    """A view of another result, or of a tensor that was there before; `recorded`: autograd knows how it was made."""

    base: Computed | Given
    steps: tuple[Step, ...]
    recorded: bool
    tensor: int
    kind: type[Tensor] = field(default=Tensor, compare=False)


Returned = Computed | Given | ViewOf
