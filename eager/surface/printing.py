"""The text of a tensor, to the character PyTorch's, and `set_printoptions`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from eager.core.dtypes import BY_NUMPY
from eager.core.homes import is_ours
from eager.core.interpreter import current_interpreter
from eager.core.meta import is_meta
from eager.core.parameter import Parameter
from eager.core.placed import is_placed
from eager.core.sparse import is_sparse
from eager.core.tensor import Tensor
from graphc.ops.dtypes import BOOL, FLOAT32, INT64, SHORT_NAMES, complex_of, default_float

Format = Callable[[Any], str]


@dataclass
class PrintOptions:
    """precision: digits after the point; threshold: elements beyond which the middle is left out; edgeitems: what is
    then shown at each end of a dimension; linewidth: characters in a line; sci_mode: None chooses by the values."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}
options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed; see `PrintOptions`. `profile` is "default", "short" or "full".

    As in PyTorch, a call without `sci_mode` lets the values choose again.
    """
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    chosen = PROFILES.get(profile or "", {}) | {name: value for name, value in given.items() if value is not None}
    for name, value in chosen.items():
        setattr(options, name, value)
    options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options in force, as keyword arguments for `set_printoptions`."""
    return asdict(options)


@contextmanager
def printoptions(**changes: Any) -> Iterator[None]:
    """A context in which `set_printoptions(**changes)` holds."""
    before = get_printoptions()
    set_printoptions(**changes)
    try:
        yield
    finally:
        set_printoptions(**before)


def tensor_text(t: Tensor) -> str:
    """What `repr(t)` shows. A traced tensor shows its type alone, unless a program may depend on the text."""
    return _text(t) if _is_plain(t) or not isinstance(t, Parameter) else f"Parameter({_text(t)})"


def _is_plain(t: Tensor) -> bool:
    """Whether it is of no class of the user's."""
    return type(t) is Tensor or is_ours(type(t).__module__)


def _text(t: Tensor) -> str:
    prefix = "tensor(" if _is_plain(t) else f"{type(t).__name__}("
    data = t._d
    if is_placed(t) and (mesh := t.device.mesh) is not None:
        local, placements = tensor_text(Tensor._wrap(data.local())), mesh._placements(data.dims)
        return f"DTensor(local_tensor={local}, device_mesh={mesh}, placements={placements})"
    if is_meta(t):
        shown = ["device='meta'", f"size={data.shape}"]
        shown += [] if t._dtype() == default_float() else [f"dtype={BY_NUMPY[t._dtype()]}"]
        return _with_suffixes(prefix + "...", [*shown, *_history(t)], len(prefix))
    if is_sparse(t):
        from eager.sparse.text import sparse_text

        return sparse_text(t, shown_text, _history(t), _with_suffixes)
    if data.__class__ is not np.ndarray and (text := data.text()) is not None:
        return text
    if data.__class__ is not np.ndarray and data.captured:
        array = data.text_values(t)
    else:
        array = current_interpreter().values_shown(t)
        current_interpreter().guard(get_printoptions, get_printoptions(), "torch.get_printoptions()")
    if array is None:
        kind = f"{SHORT_NAMES[t._dtype()]}[{','.join(map(str, data.shape))}]"
        return f"{prefix}<{kind} traced>)"
    return _with_suffixes(prefix + shown_text(array, len(prefix)), _suffixes(t, array), len(prefix))


def shown_text(array: np.ndarray, indent: int) -> str:
    """The numbers of an array as a tensor prints them, in lines that are moved right by `indent`."""
    # bfloat16 prints as the float32 numbers that it holds
    return _array_text(array.astype(FLOAT32) if array.dtype.kind == "V" else array, indent)


def _suffixes(t: Tensor, array: np.ndarray) -> list[str]:
    shown = [f"device='{t.device}'"] if is_placed(t) else []
    usual = (default_float(),)
    if not array.size:
        if array.ndim != 1:
            shown.append(f"size={array.shape}")
    else:
        if not options.edgeitems:
            shown.append(f"size={array.shape}")
        usual = (*usual, complex_of(default_float()), INT64, BOOL)
    if array.dtype not in usual:
        shown.append(f"dtype={BY_NUMPY[array.dtype]}")
    return [*shown, *_history(t)]


def _history(t: Tensor) -> list[str]:
    try:
        grad_fn = t.grad_fn
    except RuntimeError:  # a view whose history has become ambiguous
        return ["grad_fn=<Invalid>"]
    if grad_fn is not None:
        return [f"grad_fn=<{grad_fn.name().rpartition('::')[2]}>"]
    return ["requires_grad=True"] if t.requires_grad else []


def _with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    parts = [text]
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if column + len(suffix) + 2 > options.linewidth:
            parts.append(f",\n{' ' * indent}{suffix}")
            column = indent + len(suffix)
        else:
            parts.append(f", {suffix}")
            column += len(suffix) + 2
    return "".join([*parts, ")"])


def _array_text(array: np.ndarray, indent: int) -> str:
    if not array.size:
        return "[]"
    summarize = array.size > options.threshold
    shown = _edges(array) if summarize else array
    if array.dtype.kind == "c":
        (real, real_width), (imag, imag_width) = formatter(shown.real), formatter(shown.imag)

        def show(value: complex) -> str:
            tail = imag(value.imag).lstrip() + "j"
            return real(value.real) + (tail if tail[0] in "+-" else "+" + tail)

        return _nested(array, indent, summarize, show, real_width + imag_width + 1)
    show_one, width = formatter(shown)
    return _nested(array, indent, summarize, show_one, width)


def _edges(array: np.ndarray) -> np.ndarray:
    """The elements that a summary shows."""
    edge = options.edgeitems
    if not edge:
        return array[:0]
    for axis, size in enumerate(array.shape):
        if size > 2 * edge:
            array = np.take(array, [*range(edge), *range(size - edge, size)], axis)
    return array


def formatter(values: np.ndarray) -> tuple[Format, int]:
    """How each element is shown, and the width that they are brought to."""
    if values.dtype.kind != "f":
        width = max((len(str(v)) for v in values.ravel().tolist()), default=1)
        return lambda v: str(v).rjust(width), width
    style, sample = _float_style(values.astype(np.float64).ravel())
    width = max((len(style(v)) for v in sample.tolist()), default=1)
    return lambda v: style(v).rjust(width), width


def _float_style(values: np.ndarray) -> tuple[Format, np.ndarray]:
    """How a float is shown among `values`, and the finite nonzero ones, which decide it."""
    sample = values[np.isfinite(values) & (values != 0)]
    precision = options.precision
    whole = bool((sample == np.ceil(sample)).all())
    magnitude = np.abs(sample) if sample.size else np.ones(1)
    low, high = magnitude.min(), magnitude.max()
    scientific = options.sci_mode
    if scientific is None or not sample.size:
        scientific = bool(high / low > 1000.0 or high > 1e8 or low < 1e-4)
    if scientific:
        return lambda v: f"{v:.{precision}e}", sample
    if whole:
        return lambda v: f"{v:.0f}." if math.isfinite(v) else f"{v:.0f}", sample
    return lambda v: f"{v:.{precision}f}", sample


def _nested(array: np.ndarray, indent: int, summarize: bool, show: Format, width: int) -> str:
    if array.ndim == 0:
        return show(array.item())
    edge = options.edgeitems
    cut = summarize and array.shape[0] > 2 * edge
    if array.ndim == 1:
        return _row(array, indent, cut, summarize, show, width)
    picked = [*range(edge), *range(len(array) - edge, len(array))] if cut else range(len(array))
    rows = [_nested(array[i], indent + 1, summarize, show, width) for i in picked]
    if cut:
        rows.insert(edge, "...")
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(rows) + "]"


def _row(array: np.ndarray, indent: int, cut: bool, summarize: bool, show: Format, width: int) -> str:
    edge = options.edgeitems
    if summarize and not edge:
        cells = ["..."]
    elif cut:
        cells = [*map(show, array[:edge].tolist()), " ...", *map(show, array[-edge:].tolist())]
    else:
        cells = [show(v) for v in array.tolist()]
    per_line = max(1, (options.linewidth - indent) // (width + 2))
    lines = [", ".join(cells[i : i + per_line]) for i in range(0, len(cells), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
