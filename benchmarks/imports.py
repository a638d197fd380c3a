"""What `import eager` costs beside `import numpy`, each in processes of its own, in turn.

Run: python benchmarks/imports.py
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

from timing import row

ROUNDS = 25


def seconds(module: str, bytecode: str) -> float:
    """That `import module` takes in a new process, with bytecode kept in the folder `bytecode`."""
    code = f"from time import perf_counter as now; t = now(); import {module}; print(now() - t)"
    # an environment that forbids bytecode would have our sources compiled each time, and NumPy's not
    settings = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    settings["PYTHONPYCACHEPREFIX"] = bytecode
    done = subprocess.run([sys.executable, "-c", code], env=settings, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    with tempfile.TemporaryDirectory() as bytecode:
        seconds("eager", bytecode)  # writes the bytecode
        pairs = [(seconds("eager", bytecode), seconds("numpy", bytecode)) for _ in range(ROUNDS)]
    eager, numpy = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    row("import eager / import numpy", f"{ratio:.2f} ({eager * 1e3:.0f} ms / {numpy * 1e3:.0f} ms)", "at most 2")


if __name__ == "__main__":
    main()
