"""The error of data for which an algorithm has no result."""

from __future__ import annotations

from graphc.errors import LinAlgError as LinAlgError
