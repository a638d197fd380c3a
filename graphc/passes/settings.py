"""Which mechanisms of the optimizer are used: by how exact they are, by level, and by name."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from graphc.rewrite import EXACT, REASSOCIATES, Licence

NONE, EXACT_ONLY, USUAL, WIDE = LEVELS = range(4)
PACKS, CHANNELS_LAST, FACTORS, TRANSPOSED = "packs", "channels last", "shared factorizations", "transposed operands"
BLOCKS, COLUMNS, VERSIONS = "products by blocks", "sums by columns", "versions"
# the passes that do at once what a loop does in its turns: not for a loop that is there to save memory
AT_ONCE = frozenset(("rows of scans", "products of scans"))
# the passes that lay parts of arrays side by side, or ask what numbers are: not on a mesh, whose devices would have to
# exchange them
SIDE_BY_SIDE = frozenset(("slices", VERSIONS))
# what is chosen where a graph becomes a program, after the passes
LOWERING: Mapping[str, Licence] = {
    PACKS: REASSOCIATES, CHANNELS_LAST: REASSOCIATES, FACTORS: EXACT, TRANSPOSED: EXACT,
    BLOCKS: REASSOCIATES, COLUMNS: REASSOCIATES,
}  # fmt: skip


class Settings(NamedTuple):
    """The keywords of `optimize` that say what it does; see there."""

    strict: bool = False
    level: int = USUAL
    without: frozenset[str] = frozenset()

    @property
    def licence(self) -> Licence:
        """What rewrites may claim at most."""
        return EXACT if self.strict or self.level <= EXACT_ONLY else REASSOCIATES

    @property
    def not_lowered(self) -> frozenset[str]:
        """The choices of the lowering that are not used."""
        return frozenset([name for name, licence in LOWERING.items() if not self.allow(name, licence)])

    def allow(self, name: str, licence: Licence = EXACT) -> bool:
        """Whether the mechanism `name`, which claims `licence`, is used."""
        return self.level > NONE and licence <= self.licence and name not in self.without


DEFAULT = Settings()


def settings_of(known: Iterable[str], strict: bool, level: int, without: str | Collection[str]) -> Settings:
    """What was asked for. Raises ValueError for a level, or a name that is not `known`, with those that are like it."""
    if type(level) is not int or level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(map(str, LEVELS))}, got {level!r}")
    names = [*dict.fromkeys(known)]
    asked = frozenset([without] if isinstance(without, str) else without)
    for name in sorted(asked.difference(names), key=str):
        alike = difflib.get_close_matches(str(name), names)
        hint = f"Did you mean {' or '.join(map(repr, alike))}?" if alike else "See graphc.mechanisms()."
        raise ValueError(f"without: the optimizer has no mechanism named {name!r}. {hint}")
    return Settings(strict, level, asked)
