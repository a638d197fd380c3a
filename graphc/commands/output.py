"""What the commands print and write."""

from __future__ import annotations

import sys

from graphc.files import writing


def write(made: str | bytes, output: str) -> None:
    """Write to a file, or to the terminal ("-")."""
    data = made.encode() if isinstance(made, str) else made
    if output == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        writing.write(output, data)


def one_line(name: str, error: Exception) -> str:
    """An error about `name`, without line breaks."""
    text = error.strerror or str(error) if isinstance(error, OSError) else str(error)
    if isinstance(error, FileNotFoundError):
        text += ". Remedy: name a file that is there, or a function as file.py:function"
    line = " ".join(text.split())
    return line if not name or line.startswith(name) else f"{name}: {line}"
