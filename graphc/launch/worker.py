"""What the launcher starts: runs the program, and leaves at once when it fails, or when the launcher has ended."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence

from graphc.launch.job import PIPE_VARIABLE
from graphc.running.script import ScriptError, run


def _watch(descriptor: int) -> None:
    """End this process, and those that it has started, when the launcher ends: then nobody writes to the pipe."""
    os.read(descriptor, 1)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main(arguments: Sequence[str]) -> int:
    """Run `[--module] [--torch] -- program *arguments`. Returns the exit code."""
    options, program = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    descriptor = os.environ.pop(PIPE_VARIABLE, None)
    if descriptor is not None:
        os.set_inheritable(int(descriptor), False)
        threading.Thread(target=_watch, args=(int(descriptor),), name="graphc launch", daemon=True).start()
    try:
        return run(program[0], program[1:], module="--module" in options, names="--torch" in options)
    except ScriptError as error:
        print(f"graphc launch: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    code = main(sys.argv[1:])
    if code:
        # the end of the interpreter would wait for a collective that never ends
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
