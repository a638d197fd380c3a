"""What command lines name: functions in modules and files, with their arguments.

A file finds its neighbours, as a script does, and may be written for PyTorch: `torch` means `eager` while it is loaded.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib
import importlib.util
import os
import sys
import traceback
import typing
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from graphc.errors import GraphcError
from graphc.running.torch_names import torch_names
from graphc.scoped import attribute


class TargetError(ValueError):
    """The command line names something that cannot be used."""


NO_PAIR = (
    "{}() {} {}, not (function, args). Remedy: give --args module:callable, or define example_args() beside the "
    "function."
)


def add_target(command: ArgumentParser, others: str = "") -> None:
    """Let `command` take a function, and where its arguments come from. others: what it takes besides, for the help"""
    command.add_argument("target", help=f"{others}module:function or file.py:function; without --args and without "
                         "`example_args` in the module, a factory that returns (function, args)")  # fmt: skip
    command.add_argument("--args", help="module:callable that returns the tuple of arguments")


def target_of(arguments: Namespace) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function, with its keywords bound (they may have the names of `check`'s own), and its arguments."""
    fn, args, keywords = _call(arguments.target, arguments.args)
    return (functools.update_wrapper(functools.partial(fn, **keywords), fn) if keywords else fn), args


def callable_named(target: str) -> Callable[..., Any]:
    """What "module:name" or "file.py:name" names. Raises TargetError if it is not callable."""
    return _load(target)[1]


def _call(target: str, args: str | None) -> tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]:
    """The function that `target` stands for, and its arguments."""
    module, found = _load(target)
    if args is not None:
        return found, tuple(_made(args, _load(args)[1])), {}
    if hasattr(module, "example_args"):
        return found, tuple(_made(f"example_args of {target}", module.example_args)), {}
    _refuse_by_annotation(target, found)  # before it runs: it may be a program that takes hours
    made = _made(target, found)
    if not (isinstance(made, tuple) and len(made) in (2, 3) and callable(made[0])):
        raise TargetError(NO_PAIR.format(target, "returned", type(made).__name__))
    fn, positional, *keywords = made
    return fn, tuple(positional), keywords[0] if keywords else {}


@contextlib.contextmanager
def running(target: str) -> Iterator[None]:
    """A block that runs the function `target`: of what its code raises it says the line. Raises TargetError."""
    try:
        yield
    except GraphcError:  # says it by itself
        raise
    except Exception as error:
        # notes have the line of an op that fails under a trace
        where = "".join(f" {note}" for note in getattr(error, "__notes__", ())) or _user_line(error)
        raise TargetError(f"the function raises {type(error).__name__}: {_line(error)}{where}") from error


def _refuse_by_annotation(target: str, factory: Callable[..., Any]) -> None:
    """Raises TargetError if the annotation of what it returns is a class that is no tuple."""
    try:
        result = typing.get_type_hints(factory).get("return")
    except Exception:  # annotations are text, which need not mean anything
        return
    if isinstance(result, type) and not issubclass(result, tuple) and result is not object:
        raise TargetError(NO_PAIR.format(target, "returns", "None" if result is type(None) else result.__name__))


def _made(target: str, factory: Callable[[], Any]) -> Any:
    """What a factory returns. Raises TargetError if it raises."""
    try:
        with _without_arguments(target):
            return factory()
    except SystemExit as end:
        raise TargetError(f"{target}() exits (sys.exit({end.code!r})). Remedy: name a function that returns "
                          "(function, args).") from None  # fmt: skip
    except Exception as error:
        raise TargetError(
            f"{target}() raises {type(error).__name__}: {_line(error)}. Remedy: it is called without arguments, and "
            "returns (function, args) or, as --args or example_args, the arguments; a function itself needs --args "
            "module:callable, or example_args() beside it."
        ) from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _load(target: str) -> tuple[Any, Callable[..., Any]]:
    """(module, the object in it) for "module:name" or "file.py:name"."""
    place, colon, name = target.rpartition(":")
    if not colon:
        raise TargetError(f"'{target}' must be module:function")
    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, [n for n in dir(found) if callable(getattr(found, n))], 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise TargetError(f"'{place}' has no attribute '{name}'{hint}")
        found = getattr(found, part)
    if not callable(found):
        raise TargetError(f"'{target}' is not callable")
    return module, found


def _load_module(name: str) -> Any:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        with torch_names():
            return importlib.import_module(name)
    except Exception as error:  # whatever its code raises
        raise TargetError(f"module '{name}' cannot be imported: {type(error).__name__}: {_line(error)}") from error


class _Text(SourceFileLoader):
    """Compiles the text of a file each time: Python takes its bytecode for new by whole seconds and the length."""

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _load_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path, loader=_Text(path.stem, str(path)))
    if spec is None or spec.loader is None or not path.exists():
        raise TargetError(f"no file '{path}'")
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        with torch_names(), _without_arguments(str(path)):
            spec.loader.exec_module(module)
    except SystemExit as end:
        raise TargetError(f"'{path}' cannot be loaded: it exits (sys.exit({end.code!r}))") from None
    except Exception as error:  # whatever its code raises
        where = _line_in(path, error)
        raise TargetError(f"'{path}' cannot be loaded: {type(error).__name__}: {_line(error)}{where}") from error
    return module


def _user_line(error: Exception) -> str:
    """The innermost line of the user's code, as " at model.py:3"."""
    from graphc.capture.location import line_of, shown_file

    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    lines = [line_of(frame.f_code, frame.f_lasti) for frame in frames if shown_file(frame.f_code) is not None]
    return f" at {lines[-1]}" if lines else ""


def _without_arguments(script: str) -> contextlib.AbstractContextManager[None]:
    """A context in which a script does not read the arguments of this command."""
    return attribute(sys, "argv", [script])


def _line_in(path: Path, error: Exception) -> str:
    """Where in the file it happened, as " (line 3)"."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f" (line {lines[-1]})" if lines else ""
