"""Mutated files for every reader: `python -m tests.readers.sweep COUNT SEED` in a process with 1 GiB to spare.

Prints a table of outcomes. What is no outcome (a crash, another error, code that runs, work out of proportion, a file
that is accepted and should not be) ends it with the file, in hexadecimal.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from graphc.errors import FileError
from tests.readers.kinds import KINDS, Kind
from tests.readers.mutations import changed_bytes
from tests.readers.watch import at_most, limit_memory, nothing_runs

CALLS, CALLS_PER_BYTE = 100_000, 60
SAME, OTHER, REFUSED = "accepted, same meaning", "accepted, another meaning", "refused by name"


def sweep(name: str, count: int, seed: int, folder: Path) -> Counter[str]:
    """What became of `count` mutated files. Raises AssertionError with the file for what must not be."""
    kind, rng = KINDS[name], random.Random(f"{name} {seed}")
    files = kind.files()
    values = {}
    for which, data in files.items():  # also loads what is loaded late
        kind.sound(found := kind.read(data, folder))
        values[which] = kind.value(found)
    found = Counter[str]()
    for _ in range(count):
        which = rng.choice(list(files))
        data = files[which]
        deep = rng.random() < 0.6
        if deep:
            data = kind.deeper(data, rng)
        for _ in range(rng.choice([0, 0, 0, 1]) if deep else rng.choice([1, 1, 1, 2, 3])):
            data = changed_bytes(data, rng, list(files.values()))
        try:
            outcome = outcome_of(kind, data, values, deep, folder)
        except (Exception, RecursionError, MemoryError) as error:
            raise AssertionError(f"{name}: {type(error).__name__}: {str(error)[:400]}\n{data[:3000].hex()}") from error
        found[outcome] += 1
    return found


def outcome_of(kind: Kind, data: bytes, values: dict[str, object], deep: bool, folder: Path) -> str:
    """What became of a file. Raises whatever the reader raises that it should not."""
    with nothing_runs(str(folder)), at_most(CALLS + CALLS_PER_BYTE * len(data)):
        try:
            found = kind.read(data, folder)
        except kind.error as error:
            assert isinstance(error, FileError) or "had other settings" in str(error), repr(error)
            assert str(error) and len(str(error)) < 5000, "a message that nobody reads"
            assert not isinstance(error, FileError) or error.problem
            return REFUSED
    kind.sound(found)
    if any(kind.value(found) == value for value in values.values()):
        return SAME
    assert deep or not kind.sealed(data), "accepted although its checksum does not fit"
    return OTHER


def main(count: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS.values():  # what is loaded late takes its memory before the limit is set
            for data in kind.files().values():
                kind.value(kind.read(data, Path(folder)))
        limit_memory()
        total = Counter[str]()
        for name in KINDS:
            found = sweep(name, count // len(KINDS) + 1, seed, Path(folder))
            total += found
            print(f"{name:<20}", *(f"{outcome}: {n:5}" for outcome, n in sorted(found.items())), flush=True)
        print(f"{'all':<20}", *(f"{outcome}: {n:5}" for outcome, n in sorted(total.items())))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
