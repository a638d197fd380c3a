"""Random linear algebra: what optimized programs cost, beside the cheapest form that the elementary laws lead to.

Run: python benchmarks/generated_algebra.py [--count N] [--seed N] [--gradient] [--worst N]

Costs are predicted, in scalar operations (`graphc/rewrite/cost.py`): no clock is read. The search applies the laws of
associativity, distributivity, transposes, parts, traces, sums, Kronecker products and inverses to all that they lead to
(`tests/normal/exhaustive.py`). Values are compared with those of the graph as written, in float64.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from timing import one_core, row

one_core()
sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.normal.searches import GOAL, searched  # noqa: E402  (after one_core)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="of the first expression")
    parser.add_argument("--gradient", action="store_true", help="of the sum of squares, instead of the value")
    parser.add_argument("--worst", type=int, default=10, help="how many to print")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    found = {seed: searched(seed, options.gradient) for seed in seeds}
    for seed in sorted(seeds, key=lambda seed: -found[seed].ratio)[: options.worst]:
        s = found[seed]
        print(f"{seed}: {s.ratio:.2f}; {s.written:,.0f} -> {s.ours:,.0f}, possible {s.best:,.0f}")
        print(f"    {s.source}\n    {s.form}")
    count = len(found)
    row(f"within {GOAL} of the cheapest form", f"{sum(s.ratio <= GOAL for s in found.values())} of {count}", ">= 95%")
    row("as cheap, or cheaper", f"{sum(s.ratio <= 1 for s in found.values())} of {count}", "")
    row("predicted slower than as written", str(sum(s.is_slower for s in found.values())), "0")
    row("values that disagree", str(sum(s.disagrees for s in found.values())), "0")
    for seed, s in found.items():
        if s.is_slower or s.disagrees:
            print(f"{seed}: {'slower' if s.is_slower else 'disagrees'}: {s.source}")


if __name__ == "__main__":
    main()
