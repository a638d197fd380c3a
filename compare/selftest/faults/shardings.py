"""Wrong declarations of which dims run together, and sums that devices do not add up: found part by part."""

from __future__ import annotations

from typing import Any

import numpy as np

import eager as torch
from compare.selftest.fault import Expected, Fault, Trials
from compare.selftest.planting import Plant, attribute, declared, wrapped
from compare.selftest.trials import numbers, program
from eager.nn import functional as F
from graphc.ops import OPS
from graphc.ops.parts import POINTWISE
from graphc.sharding import by_parts, correspondence
from graphc.sharding.correspondence import Correspondence

LAYER = "shardings"
PARTS = ["parts"]
_x, _w, _image, _filter = numbers(4, 6), numbers(6, 8), numbers(2, 4, 6, 6), numbers(4, 4, 3, 3)
_words, _rows = numbers(8, 4), np.array([[1, 5], [7, 2]])


def _changed(name: str, change: Any) -> Plant:
    """What is read off the declaration of op `name` is changed."""

    def wrap(sound: Any) -> Any:
        return lambda node, nodes: change(sound(node, nodes)) if node.op.name == name else sound(node, nodes)

    return lambda: attribute(by_parts, "correspondence", wrap(by_parts.correspondence))


def _declared(name: str, **fields: Any) -> Plant:
    return lambda: declared(OPS[name], **fields)


def _fault(what: str, name: str, plant: Plant, trials: Trials) -> Fault:
    return Fault(f"sharding of {name}: {what}", LAYER, plant, Expected(name, "sharding"), trials)


def _turned(c: Correspondence) -> Correspondence:
    return c._replace(results=tuple(labels[::-1] for labels in c.results))


def _unsummed(c: Correspondence) -> Correspondence:
    return c._replace(reduced={})


FAULTS: tuple[Fault, ...] = (
    _fault("a missing all-reduce", "matmul", _changed("matmul", _unsummed),
           program(lambda x, w: torch.tanh(x @ w), _x, _w, modes=PARTS)),
    _fault("a missing all-reduce of a loss", "sum", _changed("sum", _unsummed),
           program(lambda x: (x * x).sum(), _x, modes=PARTS)),
    _fault("a wrong axis", "permute", _changed("permute", _turned),
           program(lambda x: torch.tanh(x.T), numbers(4, 4), modes=PARTS)),
    _fault("a mean of means that are added", "mean", lambda: attribute(by_parts, "coefficient", lambda *_: 1),
           program(lambda x: (x * x).mean(), _x, modes=PARTS)),
    _fault("a bias that every device adds", "addmm", _changed("addmm", lambda c: c._replace(added=frozenset())),
           program(lambda x, w, b: torch.addmm(b, x, w), numbers(3, 6), _w, numbers(8), modes=PARTS)),
    _fault("a row that is split", "softmax", _declared("softmax", parts=POINTWISE),
           program(lambda x: torch.softmax(x, 1), _x, modes=PARTS)),
    _fault("a stale shard: each part cumulates by itself", "cumsum", _declared("cumsum", parts=POINTWISE),
           program(lambda x: x.cumsum(0), _x, modes=PARTS)),
    _fault("channels that are not added up", "conv2d",
           _declared("conv2d", dims="n c *, o . * -> n o *"),
           program(F.conv2d, _image, _filter, modes=PARTS)),
    _fault("windows over the border of parts", "max_pool2d", _declared("max_pool2d", dims="... -> ..."),
           program(lambda x: F.max_pool2d(x, 3, 1), numbers(1, 1, 6, 6), modes=PARTS)),
    _fault("numbers of rows in each part", "index", _declared("index", dims="v d, ... -> ... d"),
           program(lambda w: F.embedding(torch.tensor(_rows), w), _words, modes=PARTS)),
    _fault("a triangle of each part", "tril", _declared("tril", dims="... -> ..."),
           program(lambda x: torch.tril(x), numbers(4, 4), modes=PARTS)),
    _fault("parts in another order", "reshape", wrapped(
        correspondence, "_major", lambda sound: lambda place, sizes, size: place.steps[-1][0] if place.steps else None),
           program(lambda x: x.reshape(2, 2, 4), numbers(4, 4), modes=PARTS)),
    _fault("places along the axis", "argcummax", _declared("argcummax", dims=lambda shapes, params: "d0 d1 -> d0 d1"),
           program(lambda x: torch.cummax(x, 0)[1], _x, modes=PARTS)),
)  # fmt: skip
