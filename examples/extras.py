"""Imported first: says which extra is missing, before anything else fails for the want of it."""

from __future__ import annotations

from graphc.errors import require

for _package in ("matplotlib", "rich", "sklearn"):
    require(_package, "the digits demo", "demo")
