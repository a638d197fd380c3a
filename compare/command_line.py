"""The command line. Exit code 0: the modes agree; 1: they do not; 2: it could not be found out."""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from compare.benchmark import DisagreementError, bench
from compare.equivalence import check
from compare.fuzzing.campaign import BATCH, fuzz
from compare.fuzzing.campaign import MODES as FUZZED
from compare.fuzzing.generator import SIZE
from compare.minimizing import minimize
from compare.operations import check_ops
from compare.tolerance import Verdict
from graphc.errors import MissingExtraError, require

AGREE, DISAGREE, UNKNOWN = 0, 1, 2


class TargetError(ValueError):
    """The command line names something that cannot be used."""


def main(argv: Sequence[str]) -> int:
    """Run the command line `argv`; returns the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except (TargetError, ValueError, MissingExtraError) as error:
        print(f"compare: {error}", file=sys.stderr)
        return UNKNOWN


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m compare", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="check|minimize|bench|ops|fuzz")
    for name, run, text in (
        ("check", _check, "judge a function in every mode"),
        ("minimize", _minimize, "find the smallest program that shows the bug which check finds"),
        ("bench", _bench, "time a function in every mode"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("target", help="module:function or file.py:function; without --args and without "
                             "`example_args` in the module, a factory that returns (function, args)")  # fmt: skip
        command.add_argument("--args", help="module:callable that returns the tuple of arguments")
        command.set_defaults(run=run)
        _common(command)
        if name == "minimize":
            command.add_argument("--out", help="a file for the script; else it is printed")
        if name == "bench":
            command.add_argument("--force", action="store_true", help="time modes that do not agree")
            command.add_argument("--min-time", type=float, default=0.2, help="seconds of steady state for each row")
    ops = commands.add_parser("ops", help="judge every op of the registry in every mode")
    ops.add_argument("names", nargs="*", help="ops; all if none is named")
    ops.set_defaults(run=_ops)
    _common(ops)
    random = commands.add_parser("fuzz", help="judge random programs over all ops")
    random.add_argument("--count", type=int, help="programs; 1000 if --seconds is not given either")
    random.add_argument("--seconds", type=float, help="begin nothing new after that time")
    random.add_argument("--size", type=int, default=SIZE, help="steps of a program")
    random.add_argument("--batch", type=int, default=BATCH, help="programs that share a compilation")
    random.add_argument("--without", help="ops to leave out, separated by commas")
    random.add_argument("--corpus", help="a folder for the programs that fail, as scripts")
    random.add_argument("--quiet", action="store_true", help="no progress bar")
    random.set_defaults(run=_fuzz)
    _common(random, ", ".join(FUZZED))
    return parser


def _common(command: argparse.ArgumentParser, modes: str = "all") -> None:
    command.add_argument("--modes", help=f"names separated by commas; {modes} if left out")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--json", action="store_true", help="print JSON")


def _check(arguments: argparse.Namespace) -> int:
    fn, args, kwargs = _call(arguments.target, arguments.args)
    report = check(
        functools.partial(fn, **kwargs) if kwargs else fn, *args, modes=_modes(arguments), seed=arguments.seed
    )
    print(report.to_json() if arguments.json else report)
    if report.ok:
        return AGREE
    return UNKNOWN if report.verdict is Verdict.UNSUPPORTED else DISAGREE


def _bench(arguments: argparse.Namespace) -> int:
    fn, args, kwargs = _call(arguments.target, arguments.args)
    options: dict[str, Any] = {"min_time": arguments.min_time, "force": arguments.force, "seed": arguments.seed}
    if arguments.modes:
        options["modes"] = _modes(arguments)
    try:
        report = bench(_bound(fn, kwargs), *args, **options)
    except DisagreementError as error:
        print(error, file=sys.stderr)
        return UNKNOWN if error.report.verdict is Verdict.UNSUPPORTED else DISAGREE
    print(report.to_json() if arguments.json else report)
    return AGREE if report.agree else DISAGREE


def _minimize(arguments: argparse.Namespace) -> int:
    fn, args, kwargs = _call(arguments.target, arguments.args)
    found = minimize(_bound(fn, kwargs), *args, modes=_modes(arguments), seed=arguments.seed)
    if arguments.out is not None:
        Path(arguments.out).write_text(found.script)
    if arguments.json:
        print(json.dumps({"source": found.program.source, "script": found.script, "report": found.report.as_dict()}))
    else:
        print(found if arguments.out is not None else found.script)
    return DISAGREE


def _ops(arguments: argparse.Namespace) -> int:
    report = check_ops(arguments.names, _modes(arguments), arguments.seed)
    print(report.to_json() if arguments.json else report)
    return AGREE if report.ok else DISAGREE


def _fuzz(arguments: argparse.Namespace) -> int:
    count = 1000 if arguments.count is None and arguments.seconds is None else arguments.count
    with contextlib.ExitStack() as stack:
        shown = sys.stderr.isatty() and not arguments.quiet
        report = fuzz(
            count, seconds=arguments.seconds, seed=arguments.seed, modes=_modes(arguments) or FUZZED,
            size=arguments.size, batch=arguments.batch, corpus=arguments.corpus,
            without=arguments.without.split(",") if arguments.without else (),
            progress=stack.enter_context(_progress(count)) if shown else None,
        )  # fmt: skip
    print(report.to_json() if arguments.json else report)
    return AGREE if report.ok else DISAGREE


@contextlib.contextmanager
def _progress(count: int | None) -> Iterator[Callable[[int, int], object]]:
    """A bar on the terminal; gives the function to call with (programs done, failures)."""
    rich = require("rich.progress", "the progress bar (--quiet goes without)", "compare")
    with rich.Progress(*rich.Progress.get_default_columns(), rich.TimeElapsedColumn()) as bar:
        task = bar.add_task("programs", total=count)
        yield lambda done, failed: bar.update(task, completed=done, description=f"{done} programs, {failed} failures")


def _bound(fn: Callable[..., Any], keywords: Mapping[str, Any]) -> Callable[..., Any]:
    """`fn` with keywords that may have the names of `check`'s own."""
    return functools.update_wrapper(functools.partial(fn, **keywords), fn) if keywords else fn


def _modes(arguments: argparse.Namespace) -> list[str] | None:
    return arguments.modes.split(",") if arguments.modes else None


def _call(target: str, args: str | None) -> tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]:
    """The function that `target` stands for, and its arguments."""
    module, found = _load(target)
    if args is not None:
        return found, tuple(_load(args)[1]()), {}
    if hasattr(module, "example_args"):
        return found, tuple(module.example_args()), {}
    made = found()
    if not (isinstance(made, tuple) and len(made) in (2, 3) and callable(made[0])):
        raise TargetError(
            f"{target}() returned {type(made).__name__}, not (function, args). Remedy: give --args module:callable, "
            "or define example_args() beside the function."
        )
    fn, positional, *keywords = made
    return fn, tuple(positional), keywords[0] if keywords else {}


def _load(target: str) -> tuple[Any, Callable[..., Any]]:
    """(module, the object in it) for "module:name" or "file.py:name"."""
    place, colon, name = target.rpartition(":")
    if not colon:
        raise TargetError(f"'{target}' must be module:function")
    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise TargetError(f"'{place}' has no attribute '{name}'")
        found = getattr(found, part)
    if not callable(found):
        raise TargetError(f"'{target}' is not callable")
    return module, found


def _load_module(name: str) -> Any:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise TargetError(str(error)) from error


def _load_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.exists():
        raise TargetError(f"no file '{path}'")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
