"""What a call of a program does, as it is known when the program has been made ready."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from eager.core import tape
from eager.core.devices import CPU
from graphc.capture.example_values import HostedValues
from graphc.capture.program import Program
from graphc.capture.sources import Computed, Effect, Source
from graphc.execution.packs import Packs
from graphc.execution.prechecks import Prechecks


class Plan(NamedTuple):
    """What a call of a program does.

    program   what was captured
    effects   its effects that have a value; their values are the outputs after those that results are made of
    places    which output a result is
    hosted    the numbers of results that are numbers and follow from Python's own, no outputs; and what computes them
    outputs   shape and dtype of each result, then of the value of each effect
    donated   numbers of the inputs whose memory the program takes over
    live      outputs that can be differentiated: `join` gives them a tape node
    ended     outputs that require grad, but lead to no leaf that anyone has
    broken    output -> what its backward() raises
    wrt       the sources that its gradient would be for
    made      which parent of the live results' tape node each leaf is that the program makes, by its number among those
    arguments number of tensors among the arguments
    prechecks what is asked before the program runs
    packs     where small state lies, if it does
    """

    program: Program
    effects: Sequence[Effect]
    places: Mapping[Computed, int]
    hosted: tuple[Sequence[int], HostedValues | None]
    outputs: Sequence[tuple[tuple[int, ...], np.dtype]]
    donated: Sequence[int]
    live: Sequence[int]
    ended: Sequence[int]
    broken: Mapping[int, str]
    wrt: Sequence[Source]
    made: Mapping[int, int]
    arguments: int
    prechecks: Prechecks
    packs: Packs | None


class Services(NamedTuple):
    """What the code calls.

    executable  the XLA program
    unsealed    the array of a tensor that was made in inference mode, or lies in a pack
    join        (results, arrays, outputs, tensors): gives live results, if there are any, their tape node;
                which it returns
    failed      (exception): raises another one if it is a check of the program that has failed
    stopped     what a check that has failed raises
    refused     the exception for a precheck that has failed
    broken      of a tape node whose backward raises RuntimeError with what the node has saved
    ended       of a tape node that gives nothing to anyone
    where       the device of its tensors; None for the CPU
    lie         on a mesh of processes: where each output lies that a caller sees; empty if all are at `where`
    """

    executable: Any
    unsealed: Callable[[Any], np.ndarray]
    join: Callable[..., Any] | None
    failed: Callable[[Exception], None]
    stopped: tuple[type[Exception], ...]
    refused: type[Exception]
    broken: tape.Backward
    ended: tape.Backward
    where: Any = None
    lie: Sequence[Any] = ()

    def place(self, k: int) -> Any:
        """Where output number `k` lies; None for the CPU."""
        found = self.lie[k] if self.lie else self.where
        return None if found is CPU else found
