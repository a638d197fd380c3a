"""Runs a script or a module as Python's own command line does: its arguments, path, errors and exit code."""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from dis import opmap
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, TracebackType
from typing import NamedTuple

from graphc.errors import GraphcError
from graphc.running.decorating import UnknownFunction, with_compiled
from graphc.running.torch_names import CHILDREN, torch_names

FAILED, INTERRUPTED = 1, 130  # exit codes
_ROOT = str(Path(__file__).resolve().parents[2])


_RAISES = opmap["RAISE_VARARGS"]
_BEFORE = (__file__, with_compiled.__code__.co_filename)  # files whose frames a traceback of the program leaves out


class ScriptError(GraphcError):
    """There is no such script or module, or no such function in it."""


class _Program(NamedTuple):
    path: str
    source: bytes
    spec: ModuleSpec | None  # of a module


def run(
    target: str,
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    names: bool = True,
    compiled: Sequence[str] = (),
) -> int:
    """Run a file of Python, or with `module` the module of that name, as `__main__`. Returns its exit code.

    names     `torch` means `eager` in the program, and in the processes that it starts
    compiled  functions of the program to which `graphc.compile` is applied: "step", "Model.forward"

    What the program raises is printed as Python does, with a traceback that begins in it. `sys.argv`, `sys.path` and
    `__main__` stay as it has them: what it does at the end of the process needs them. Raises ScriptError if there is no
    such program.
    """
    if names:
        importlib.import_module("eager")  # while the path is that of the command
    sys.path[:1] = [os.getcwd() if module else os.path.dirname(os.path.realpath(_file(target)))]
    if _ROOT not in sys.path:
        sys.path.append(_ROOT)
    if names:
        torch_names()
        paths = [str(CHILDREN), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, dict.fromkeys(paths)))
    try:
        program = _module(target) if module else _script(target)
        sys.argv = [program.path if module else target, *arguments]
        _execute(program, compiled)
    except UnknownFunction as error:
        raise ScriptError(f"{target} has {error}") from None
    except ScriptError:
        raise
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return FAILED
    except BaseException as error:
        error.__traceback__ = _of_program(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILED
    return 0


def _file(target: str) -> str:
    path = os.path.abspath(target)
    return os.path.join(path, "__main__.py") if os.path.isdir(path) else path


def _script(target: str) -> _Program:
    path = _file(target)
    try:
        return _Program(path, Path(path).read_bytes(), None)
    except OSError as error:
        if os.path.isdir(target):
            raise ScriptError(f"can't find '__main__' module in '{target}'") from None
        raise ScriptError(f"can't open file '{target}': {error.strerror}") from None


def _module(name: str) -> _Program:
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise
        spec = None
    if spec is None or spec.origin is None or not spec.has_location:
        raise ScriptError(f"No module named '{name}' that can be run")
    return _Program(spec.origin, Path(spec.origin).read_bytes(), spec)


def _execute(program: _Program, compiled: Sequence[str]) -> None:
    source = with_compiled(program.source, program.path, compiled) if compiled else program.source
    code = compile(source, program.path, "exec", dont_inherit=True)
    main = ModuleType("__main__")
    vars(main).update(__file__=program.path, __builtins__=builtins, __spec__=program.spec)
    if program.spec is not None:
        vars(main).update(__package__=program.spec.parent, __loader__=program.spec.loader)
    sys.modules["__main__"] = main
    exec(code, vars(main))


def _of_program(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback of the program's own lines, as over PyTorch.

    An error that the library raises comes from the line that calls it. What a line of the library itself stumbles over
    is a fault of the library, and shown in full.
    """
    while traceback is not None and traceback.tb_frame.f_code.co_filename in _BEFORE:
        traceback = traceback.tb_next
    from graphc.capture.location import shown_file  # after the program, which may not need it

    steps: list[TracebackType] = []
    while traceback is not None:
        steps.append(traceback)
        traceback = traceback.tb_next
    own = [step for step in steps if shown_file(step.tb_frame.f_code) is not None]
    if not own:
        return steps[0] if steps else None
    if steps[-1] is own[-1] or steps[-1].tb_frame.f_code.co_code[steps[-1].tb_lasti] == _RAISES:
        for step, following in zip(own, [*own[1:], None], strict=True):
            step.tb_next = following
        return own[0]
    return steps[0]
