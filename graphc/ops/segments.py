"""`segment`: the borders of what is to be computed again in backward (`torch.utils.checkpoint`)."""

from __future__ import annotations

from graphc.ops import parts
from graphc.ops.index_maps import itself
from graphc.ops.rules import same
from graphc.ops.samples import Sample
from graphc.ops.spec import Trait, op

BEGIN, END, ARRIVED = "begin", "end", "arrived"

segment = op(
    "segment", "input", params={"number": 0, "place": BEGIN}, impl=lambda xp, x, number, place: x, rule=same,
    passes=True, numpy=lambda x, number, place: x.copy(), parts=parts.POINTWISE, traits=Trait.LINEAR | Trait.MOVES,
    ref=lambda x, number, place: itself(x),
    vjp=dict(input=lambda F, g, number, place: F.segment(g, number=number, place=ARRIVED) if place == END else g),
    samples=tuple(Sample((3, 4), number=1, place=place) for place in (BEGIN, END, ARRIVED)),
    doc="`input` as it is. place: whether it is given to the segment of this number ('begin'), what that returns "
        "('end'), or the gradient of that ('arrived').",
)  # fmt: skip
