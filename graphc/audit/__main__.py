"""`python -m graphc.audit`: see `python -m graphc.audit --help`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from graphc.audit.report import audit
from graphc.audit.vocabulary import EXTENTS, VOCABULARIES, vocabulary
from graphc.errors import AuditError

FINE, BELOW, REFUSED = 0, 1, 2


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m graphc.audit",
        description="Enumerate small terms, find which are equal, and ask whether the optimizer makes both sides of "
        "each equation equally cheap. Equations that assume something are counted apart.",
        epilog="exit status: 0, or 1 if less than --least is reached, or 2 for wrong arguments",
    )
    parser.add_argument("vocabulary", nargs="?", default="scalars", choices=VOCABULARIES, help="%(choices)s")
    extents = ", ".join(EXTENTS)
    parser.add_argument("--ops", help="other operations: names of ops, 'permute(dims=(1,0))', or module:function of "
                        "a function f(F, *operands) in the op language, or of an op")  # fmt: skip
    parser.add_argument("--own", action="append", default=[], metavar="module:function", help="one more operation")
    parser.add_argument("--leaves", help=f"other leaves: numbers, and arrays as 'x[e] A[n,n]', of extents {extents}")
    parser.add_argument("--size", type=int, default=3, help="the most operations of a term; by default %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of the points and of the sample; by default %(default)s")
    parser.add_argument("--limit", type=int, default=1000, metavar="N",
                        help="judge a sample of N equations; 0: all; by default %(default)s")  # fmt: skip
    parser.add_argument("--least", type=float, default=0.0, metavar="PERCENT", help="the share to be reached")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run the command line. Returns the exit status."""
    given = _arguments().parse_args(arguments)
    leaves, operations = VOCABULARIES[given.vocabulary]
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # where a user's own module may be
    try:
        chosen = vocabulary(given.leaves or leaves, " ".join([given.ops or operations, *given.own]))
    except AuditError as error:
        print(f"graphc.audit: {error}", file=sys.stderr)
        return REFUSED
    found = audit(chosen, size=given.size, seed=given.seed, limit=given.limit or None)
    print(found)
    return FINE if 100 * found.share >= given.least else BELOW


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
