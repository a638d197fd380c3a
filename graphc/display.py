"""How results show: one line where they are named, all of it in print, and as printed in a notebook."""

from __future__ import annotations

import html

WIDTH = 120


class Displayed:
    """A base of what people look at. `str(x)` is all of it; of that, `repr(x)` is the first line."""

    __slots__ = ()

    def __repr__(self) -> str:
        first = str(self).lstrip().split("\n", 1)[0].rstrip(":")
        return f"<{type(self).__name__} {first if len(first) <= WIDTH else f'{first[: WIDTH - 3]}...'}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f'<pre style="line-height: 1.3">{html.escape(str(self))}</pre>'


class Text(Displayed, str):
    """A text of several lines."""

    __slots__ = ()

    __str__ = str.__str__
