"""What processes do together: each is given its own array, and all call the same op in the same order.

ranks: the processes of the group, by their numbers in the world, in the order of the group. Positions in a group
(`source`, `target`) count from 0. Results have one block for each process, in that order, along a first dimension.

Gradients are those of PyTorch's `torch.distributed.nn.functional`: of the sum of what all processes compute of theirs.
A group of one needs no `Transport`; what carries the arrays of others is set by whoever has started the processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, final

import numpy as np

from graphc.ops.aval import Aval
from graphc.ops.references import everywhere
from graphc.ops.rules import same
from graphc.ops.samples import Sample
from graphc.ops.spec import Op, Rule, Trait, op

NOT_INITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."
_ALONE = (0,)


class Transport(Protocol):
    """What carries arrays between processes."""

    def run(self, name: str, array: np.ndarray, params: Mapping[str, Any]) -> np.ndarray:
        """The result, in this process, of the op `name`, once all processes of `params["ranks"]` have called it."""
        ...


@final
class _Carrier:
    """transport: None while this process is alone."""

    def __init__(self):
        self.transport: Transport | None = None


carrier = _Carrier()


def label_of(name: str, array: Any, params: Mapping[str, Any]) -> str:
    """A collective, as messages name it: all_reduce(float32[3]) of ranks 0, 1."""
    shape = ",".join(map(str, array.shape))
    return f"{name}({array.dtype}[{shape}]) of ranks {', '.join(map(str, params['ranks']))}"


def blocks(op: Op, aval: Aval, ranks: tuple[int, ...]) -> None:
    """Raise ValueError unless `aval` has one block for each process."""
    if not aval.shape or aval.shape[0] != len(ranks):
        raise ValueError(f"{op.name}: expected {len(ranks)} blocks along the first dimension, got {aval}")


def _gathered(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    return Aval((len(params["ranks"]), *avals[0].shape), avals[0].dtype)


def _scattered(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    blocks(op, avals[0], params["ranks"])
    return Aval(avals[0].shape[1:], avals[0].dtype)


def _exchanged(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    blocks(op, avals[0], params["ranks"])
    return avals[0]


def _collective(name: str, alone: Callable[[Any], Any], rule: Rule, shape: tuple[int, ...], **declaration: Any) -> Op:
    """alone: what it is in a group of one; shape: that of the sample."""
    given = {"ranks": _ALONE, **declaration.pop("params", {})}

    def kernel(x: np.ndarray, **params: Any) -> np.ndarray:
        if len(params["ranks"]) == 1:
            return np.array(alone(x))
        if carrier.transport is None:
            raise ValueError(NOT_INITIALIZED)
        return carrier.transport.run(name, x, params)

    return op(
        name, "x", params=given, impl=lambda xp, x, **params: alone(x), numpy=kernel, rule=rule,
        ref=everywhere(lambda x, **params: alone(x)), samples=(Sample(shape, **given),),
        traits=Trait.IMPURE | Trait.COMMUNICATES | Trait.MOVES, **declaration,
    )  # fmt: skip


def _itself(x: Any) -> Any:
    return x


# every process gets the reduction; PyTorch reduces gradients by the same operation, whatever it is
all_reduce = _collective(
    "all_reduce", _itself, same, (2, 3), params={"reduction": "sum"},
    vjp=dict(x=lambda F, g, reduction, ranks: F.all_reduce(g, reduction=reduction, ranks=ranks)),
)  # fmt: skip

all_gather = _collective(
    "all_gather", lambda x: x[None], Rule(_gathered), (2, 3),
    vjp=dict(x=lambda F, g, ranks: F.reduce_scatter(g, reduction="sum", ranks=ranks)),
)  # fmt: skip

# process number k gets the reduction of all blocks k
reduce_scatter = _collective(
    "reduce_scatter", lambda x: x[0], Rule(_scattered), (1, 3), params={"reduction": "sum"},
    vjp=dict(x=lambda F, g, ranks: F.all_gather(g, ranks=ranks)),
)  # fmt: skip

# process number k gets everybody's block k
all_to_all = _collective(
    "all_to_all", _itself, Rule(_exchanged), (1, 3), vjp=dict(x=lambda F, g, ranks: F.all_to_all(g, ranks=ranks))
)

broadcast = _collective(
    "broadcast", _itself, same, (2, 3), params={"source": 0},
    vjp=dict(x=lambda F, g, source, ranks: F.reduce_to(g, target=source, ranks=ranks)),
)  # fmt: skip

# the target gets the sum, the others zeros
reduce_to = _collective(
    "reduce_to", _itself, same, (2, 3), params={"target": 0},
    vjp=dict(x=lambda F, g, target, ranks: F.broadcast(g, source=target, ranks=ranks)),
)  # fmt: skip
