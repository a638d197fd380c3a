"""`python -m compare fuzz`: judge random programs over all ops."""

from __future__ import annotations

import contextlib
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator

from compare.commands.exit_codes import AGREE, DISAGREE
from compare.commands.target import add_common, modes_of
from compare.fuzzing.campaign import BATCH, fuzz
from compare.fuzzing.campaign import MODES as FUZZED
from compare.fuzzing.generator import SIZE
from compare.fuzzing.workers import MIB, Limits
from graphc.display.terminal import show
from graphc.errors import require

HELP = "judge random programs over all ops"


def add_arguments(command: ArgumentParser) -> None:
    command.add_argument("--count", type=int, help="programs; 1000 if --seconds is not given either")
    command.add_argument("--seconds", type=float, help="begin nothing new after that time")
    command.add_argument("--size", type=int, default=SIZE, help="ops of a program")
    command.add_argument("--batch", type=int, default=BATCH, help="programs that share a compilation")
    command.add_argument("--without", help="ops to leave out, separated by commas")
    command.add_argument("--quick", action="store_true", help="XLA compiles batches without its optimizations")
    command.add_argument(
        "--workers", type=int, default=1, help="processes; 0: none but the command's own, without limits"
    )
    command.add_argument(
        "--time-limit",
        type=float,
        default=Limits().seconds,
        metavar="SECONDS",
        help="of processor time for a batch; what takes longer hangs: a failure",
    )
    command.add_argument(
        "--memory-limit",
        type=float,
        default=Limits().memory / MIB,
        metavar="MIB",
        help="that the process of a batch may have resident; a program that takes more is a failure",
    )
    command.add_argument("--corpus", help="a folder for the programs that fail, as scripts, and how far it has come")
    command.add_argument("--resume", action="store_true", help="go on where the campaign in --corpus has stopped")
    command.add_argument("--quiet", action="store_true", help="no progress bar")
    add_common(command, ", ".join(FUZZED), seed=None)


def run(arguments: Namespace) -> int:
    if arguments.count is not None and arguments.count < 0:
        raise ValueError(f"--count must not be negative, got {arguments.count}")
    count = 1000 if arguments.count is None and arguments.seconds is None else arguments.count
    with contextlib.ExitStack() as stack:
        shown = sys.stderr.isatty() and not arguments.quiet
        report = fuzz(
            count, seconds=arguments.seconds, seed=arguments.seed, modes=modes_of(arguments) or FUZZED,
            size=arguments.size, batch=arguments.batch, quick=arguments.quick, corpus=arguments.corpus,
            workers=arguments.workers, resume=arguments.resume, time_limit=arguments.time_limit,
            memory_limit=arguments.memory_limit,
            without=arguments.without.split(",") if arguments.without else (),
            progress=stack.enter_context(_progress(count)) if shown else None,
        )  # fmt: skip
    show(report, arguments.json)
    return AGREE if report.ok else DISAGREE


@contextlib.contextmanager
def _progress(count: int | None) -> Iterator[Callable[[int, int], object]]:
    """A bar on the terminal; gives the function to call with (programs done, failures)."""
    rich = require("rich.progress", "the progress bar (--quiet goes without)", "compare")
    with rich.Progress(*rich.Progress.get_default_columns(), rich.TimeElapsedColumn()) as bar:
        task = bar.add_task("programs", total=count)
        yield lambda done, failed: bar.update(task, completed=done, description=f"{done} programs, {failed} failures")
