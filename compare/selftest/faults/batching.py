"""Wrong batching rules: what `vmap` makes of an op. Eager and all graphs are captured through them and agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import eager as torch
from compare.locating.batching import BATCHING
from compare.selftest.fault import Expected, Fault, Trials
from compare.selftest.planting import Plant, entry
from compare.selftest.trials import numbers, program
from eager.engine.language import E
from eager.func import batch_rules
from eager.func.batch_rules import RULES, rule_of
from graphc.ops import OPS

LAYER = "batching rules"


def _fault(op: str, what: str, change: Callable[..., Any], trials: Trials) -> Fault:
    """The rule of `op` is `change(sound, op, size, operands, batched, params)`."""
    sound = rule_of(OPS[op])

    def wrong(*given: Any) -> Any:
        return change(sound, *given)

    plant: Plant = lambda: entry(RULES, op, wrong)
    return Fault(f"batching of {op}: {what}", LAYER, plant, Expected(op, BATCHING), trials)


def _not_moved(sound: Any, op: Any, size: int, operands: Any, batched: Any, params: Any) -> Any:
    """The dim that `axis` names is counted from the batch dim on."""
    return batch_rules.unchanged(op, size, operands, batched, params)


def _first_for_all(sound: Any, op: Any, size: int, operands: Any, batched: Any, params: Any) -> Any:
    """Each slice gets the first one's last operand."""
    last = E.expand(operands[-1][:1], shape=tuple(operands[-1].shape)) if batched[-1] else operands[-1]
    return sound(op, size, [*operands[:-1], last], batched, params)


def _backwards(sound: Any, op: Any, size: int, operands: Any, batched: Any, params: Any) -> Any:
    """The slices of the first operand in reverse order."""
    first = E.flip(operands[0], axis=(0,)) if batched[0] else operands[0]
    return sound(op, size, [first, *operands[1:]], batched, params)


def _scaled(sound: Any, op: Any, size: int, operands: Any, batched: Any, params: Any) -> Any:
    return E.mul(sound(op, size, operands, batched, params), torch.tensor(1.1))


_cube = numbers(3, 3, 3)
_rows, _matrices, _others = numbers(4, 3), numbers(4, 3, 3), numbers(4, 3, 3, seed=6)
_definite = _matrices @ _matrices.swapaxes(1, 2) + np.eye(3, dtype=np.float32)

FAULTS: tuple[Fault, ...] = (
    _fault("cumsum", "the axis is not shifted", _not_moved,
           program(torch.vmap(lambda x: x.cumsum(0)), _cube)),
    _fault("softmax", "the axis is not shifted", _not_moved,
           program(torch.vmap(lambda x: x.softmax(0)), _cube)),
    _fault("matmul", "one right operand for all", _first_for_all,
           program(torch.vmap(lambda a, b: a @ b), _matrices, _others)),
    _fault("gather", "slices in reverse order", _backwards,
           program(torch.vmap(lambda x: x.gather(0, torch.tensor([2, 0, 0]))), _rows)),
    _fault("solve", "one right side for all", _first_for_all,
           program(torch.vmap(lambda a, b: torch.linalg.solve(a, b)), _definite, _others)),
    _fault("triu", "scaled", _scaled, program(torch.vmap(lambda x: x.triu() @ x), _matrices)),
    _fault("atan2", "slices in reverse order", _backwards,
           program(torch.vmap(lambda a, b: torch.atan2(a, b).sin()), _rows, numbers(4, 3, seed=6))),
)  # fmt: skip
