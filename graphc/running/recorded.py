"""A process that runs a program and writes what it has computed: see `graphc.running.comparing`.

Arguments: the file to write, and those of `graphc.running.script.run`, as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import numpy as np

from graphc.running import recording
from graphc.running.script import run


def main(arguments: Sequence[str]) -> int:
    """Run the program, write the file, and return the program's exit code."""
    output, given = arguments
    recorded = recording.start()
    status = run(**json.loads(given))
    np.savez(output, allow_pickle=False, **{**recorded.arrays, **recording.of_globals(vars(sys.modules["__main__"]))})
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
