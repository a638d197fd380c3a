"""`python -m compare bench`: time a function in every mode."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from compare.benchmarking import bench, scaling
from compare.commands.exit_codes import AGREE, DISAGREE
from compare.commands.target import (
    TargetError,
    add_common,
    add_target,
    callable_named,
    check_writable,
    modes_of,
    target_of,
)
from graphc.display.terminal import show

HELP = "time a function in every mode"


def add_arguments(command: ArgumentParser) -> None:
    add_target(command)
    add_timing(command)
    command.add_argument("--force", action="store_true", help="time modes that do not agree")
    command.add_argument("--sizes", help="numbers separated by commas, for each of which the target is called: it is "
                         "a factory, target(size) -> (function, args)")  # fmt: skip
    command.add_argument("--plot", metavar="FILE", help="write a figure, in the format that the name ends with")


def add_timing(command: ArgumentParser) -> None:
    """The options of what is timed."""
    add_common(command)
    command.add_argument("--torch", metavar="TARGET", help="module:function, the same function for PyTorch")
    command.add_argument("--min-time", type=float, default=0.2, help="seconds of steady state for each row")


def timing_options(arguments: Namespace) -> dict[str, Any]:
    """These options as keywords of `bench`."""
    torch_fn = callable_named(arguments.torch) if arguments.torch else None
    return {
        "modes": modes_of(arguments), "torch_fn": torch_fn, "min_time": arguments.min_time, "seed": arguments.seed,
    }  # fmt: skip


def run(arguments: Namespace) -> int:
    check_writable(arguments.plot)
    options = {**timing_options(arguments), "force": arguments.force}
    if arguments.sizes:
        if not all(size.strip().isdecimal() for size in arguments.sizes.split(",")):
            raise TargetError(f"--sizes takes numbers separated by commas, got '{arguments.sizes}'")
        sizes = [int(size) for size in arguments.sizes.split(",")]
        report = scaling(callable_named(arguments.target), sizes, **options)
    else:
        fn, args = target_of(arguments)
        report = bench(fn, *args, **options)
    if arguments.plot:
        report.plot(arguments.plot)
    show(report, arguments.json)
    return AGREE if report.agree else DISAGREE
