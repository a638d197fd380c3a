"""A function that XLA takes as it is written and graphc does not: a chain of products, and a log that overflows.

python -m compare bench examples/chain.py:large    # compiling pays
python examples/chain.py [docs/graph.svg]          # the picture in README.md: as it is written, and optimized
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import eager as torch
import graphc

GAP = 40  # between the two drawings


def chain(a, x):
    """softplus(a.T a x), the long way."""
    return torch.log(1 + torch.exp(a.T @ a @ x)).mean()


def large(size=600):
    """The function, and arguments for which compiling pays: what the commands are given."""
    torch.manual_seed(0)
    return chain, (torch.randn(size, size) / size**0.5, torch.randn(size))


def picture() -> str:
    """Both graphs beside each other, as one SVG document that is the same on every machine."""
    before = graphc.trace(chain, torch.ones(300, 300), torch.ones(300))
    after = graphc.optimize(before)
    titles = {f"as written: {len(before)} nodes": before, f"optimized: {len(after)} nodes": after}
    parts: list[str] = []
    width = height = 0.0
    for title, graph in titles.items():
        svg = graph.to_svg(title, layout="layers")
        svg = re.sub(r"\n? ?\w*/\S+\.py:\d+|\n\S+\.py:\d+", "", svg)  # no path of this machine
        found = re.search(r'viewBox="0 0 (\d+) (\d+)"', svg)
        assert found is not None
        own = float(found[1]), float(found[2])
        place = f'x="{width:.0f}" width="{own[0]:.0f}" height="{own[1]:.0f}" '
        parts.append(re.sub(r' width="\d+" style="[^"]*"', "", svg, count=1).replace("<svg ", f"<svg {place}", 1))
        width, height = width + own[0] + GAP, max(height, own[1])
    size = f'width="{width - GAP:.0f}" viewBox="0 0 {width - GAP:.0f} {height:.0f}"'
    backdrop = '<rect width="100%" height="100%" fill="white"/>\n'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n{backdrop}{"".join(parts)}</svg>\n'


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/graph.svg")
    target.write_text(picture(), encoding="utf-8")
    print(f"written to {target}")
