"""Writes every stub anew: `python -m tests.stubs`."""

from __future__ import annotations

from pathlib import Path

from tests.stubs.files import STUBS

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    for path, make in STUBS.items():
        (ROOT / path).write_text(make())


if __name__ == "__main__":
    main()
