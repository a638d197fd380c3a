"""`shard`: a value, with the wish that it lies on the mesh of the program in a certain way."""

from __future__ import annotations

from graphc.ops import parts
from graphc.ops.index_maps import itself
from graphc.ops.rules import same
from graphc.ops.samples import Sample
from graphc.ops.spec import Trait, op

# No lifting: sums of products are not taken apart across it, since the user has said where their factors lie.
shard = op(
    "shard", "input", params={"spec": ()}, impl=lambda xp, x, spec: x, rule=same, passes=True,
    numpy=lambda x, spec: x.copy(), parts=parts.POINTWISE, traits=Trait.LINEAR | Trait.MOVES,
    ref=lambda x, spec: itself(x),
    vjp=dict(input=lambda F, g, spec: F.shard(g, spec=spec)), samples=(Sample((3, 4), spec=(("data",), ())),),
    doc="`input` as it is. spec: for each dim, the axes of the mesh that it is split over, by name or number, or None, "
        "which leaves the dim to the compiler; nothing where the program runs on no mesh.",
)  # fmt: skip
