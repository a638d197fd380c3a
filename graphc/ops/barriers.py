"""When a value is computed: an array, from the time on that another is known."""

from __future__ import annotations

from graphc.ops.index_maps import itself
from graphc.ops.samples import Ints, Sample
from graphc.ops.spec import Rule, Trait, op

held = op(
    "held", "input until", impl=lambda xp, x, until: x, numpy=lambda x, until: x.copy(),
    rule=Rule(lambda op, avals, params: avals[0]), ref=itself, traits=Trait.MOVES, vjp=dict(input=lambda F, g: g),
    samples=(Sample((3, 2), (4,)), Sample((2,), Ints((), 5, 1))), dims="..., _ -> ...",
    doc="`input`, but not before `until` is known: what is made of it is not merged with what is made of `input`.",
)  # fmt: skip
