"""By what a compiled program is known: everything that XLA's result depends on."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import jax
import jaxlib.version
import numpy as np
import scipy

from graphc.ops import Literal, Op
from graphc.ops.aval import Aval

_FORMAT = 2  # of the files
_CODE = "ops", "lowering"  # subpackages that a program's meaning depends on, besides its source
_VARIABLES = "XLA_", "TF_", "CUDA_", "NVIDIA_", "LIBTPU_"  # how those of the environment begin that compilers look at
_ROOT = __name__.partition(".")[0]
# whose code is known by its digest, or its version
_CODED = (*(f"{_ROOT}.{folder}." for folder in _CODE), "jax.", "numpy.", "scipy.")
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type, np.dtype)


class _Unknown(Exception):
    """What a name of a program stands for is not described by this package's code."""


def key_of(
    text: str, scope: Mapping[str, Any], avals: Sequence[Aval], donated: Sequence[int], options: Any, device: Any
) -> str | None:
    """A name for a program on a device; the same in each process, and for no other program. None if there is none.

    text   its source, without places
    scope  what the names in it stand for
    """
    code = _own_code()
    if code is None:
        return None
    try:
        names = [f"{name}={part}" for name, value in scope.items() for part in _described(value)]
    except _Unknown:  # a kernel of the user's: what it does may change while it looks the same
        return None
    shapes = [(a.shape, str(a.dtype)) for a in avals]
    rest = (names, shapes, tuple(donated), options, code, *_surroundings(), *_of_device(device))
    return hashlib.sha256("\0".join([text, *map(repr, rest)]).encode()).hexdigest()


def _described(value: Any) -> Iterator[str]:
    """What `value` is, in terms that hold in other processes that run the same code."""
    if isinstance(value, Literal):
        yield f"{value.array.dtype}{value.array.shape}{hashlib.sha256(value.array.tobytes()).hexdigest()}"
    elif isinstance(value, SimpleNamespace):
        for name, member in vars(value).items():
            yield name
            yield from _described(member)
    elif isinstance(value, FunctionType):
        if not f"{value.__module__}.".startswith(_CODED):
            raise _Unknown(value)
        yield f"{value.__module__}.{value.__qualname__}:{value.__code__.co_firstlineno}:{_digest(value.__code__)}"
        bound = (value.__defaults__ or ()), *(value.__kwdefaults__ or {}).items()
        for part in (*bound, *(cell.cell_contents for cell in value.__closure__ or ())):
            yield from _described(part)
    elif isinstance(value, functools.partial):
        yield from _described((value.func, *value.args, *value.keywords.items()))
    elif isinstance(value, Op):
        yield value.name
        yield from _described(value.impl)
    elif isinstance(value, tuple):
        for part in value:
            yield from _described(part)
    elif isinstance(value, ModuleType):
        yield value.__name__
    elif isinstance(value, _PLAIN):
        yield repr(value)
    elif hasattr(value, "__wrapped__"):  # a function with a derivative of its own
        yield from _described(value.__wrapped__)
    else:
        raise _Unknown(value)


@functools.cache
def _digest(code: CodeType) -> str:
    """What a function does, apart from the values that it refers to: several may stand in one line."""
    consts = (_digest(c) if isinstance(c, CodeType) else sorted(map(repr, c)) if isinstance(c, frozenset) else repr(c)
              for c in code.co_consts)  # fmt: skip
    parts = code.co_code, code.co_names, code.co_varnames, code.co_freevars, list(consts)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


@functools.cache
def _own_code() -> str | None:
    """A digest of this package's code; None if it does not lie in files."""
    root = Path(__file__).parents[1]
    files = [path for folder in _CODE for path in sorted((root / folder).rglob("*.py"))]
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest() if files else None


def _surroundings() -> Iterator[Any]:
    """The versions of what takes part, and its settings: JAX's are those of this thread."""
    yield _FORMAT, platform.python_version()
    yield jax.__version__, jaxlib.version.__version__, np.__version__, scipy.__version__
    yield sorted((name, value) for name, value in os.environ.items() if name.startswith(_VARIABLES))
    yield sorted((name, repr(value)) for name, value in jax.config.values.items())


@functools.cache
def _of_device(device: Any) -> tuple[Any, ...]:
    """What code for the device may differ by; of the CPU, its instructions."""
    found: Any = np.show_config(mode="dicts")
    instructions = found["SIMD Extensions"]
    return device.platform, device.device_kind, device.client.platform_version, platform.machine(), instructions
