"""The programs here are for type checkers: they have errors, so pytest does not import them."""

from __future__ import annotations

collect_ignore_glob = ["programs/*"]
