"""Functions named after views that give copies, and splits whose parts do not know of each other."""

from __future__ import annotations

from typing import Any

from eager.core import operands
from eager.core.tensor import Tensor
from eager.core.views import not_a_view
from eager.engine.language import E
from eager.functional import joining, regions, shapes, strides
from eager.functional.casts import detach
from eager.functional.complexes import view_as_complex, view_as_real
from eager.functional.naming import called, signature_of
from eager.functional.outputs import with_out


def _alias(input: Tensor) -> Tensor:
    return input


def _slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    place = [slice(None)] * (dim % len(operands.shape(input))) + [slice(start, end, step)]
    return input[tuple(place)]  # type: ignore[index]


def _expand(input: Tensor, size: Any, *, implicit: bool = False) -> Tensor:
    return shapes.expand(input, size)


_VIEWS = {
    "alias": _alias, "as_strided": strides.as_strided, "detach": detach, "diagonal": shapes.diagonal,
    "expand": _expand, "permute": shapes.permute, "select": joining.select, "slice": _slice,
    "squeeze": shapes.squeeze, "t": shapes.t, "transpose": shapes.transpose, "unfold": strides.unfold,
    "unsqueeze": shapes.unsqueeze, "view": shapes.view, "view_as_complex": view_as_complex,
    "view_as_real": view_as_real,
}  # fmt: skip
_PARTS = {"split": joining.split, "split_with_sizes": regions.split_with_sizes, "unbind": joining.unbind}


def _copy(name: str, view: Any) -> Any:
    @called(f"{name}_copy", f"A copy of what `{name}` shows.", "torch")
    def function(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return E.clone(view(input, *args, **kwargs))

    function.__signature__ = signature_of(view, "input")  # type: ignore[attr-defined]
    return with_out(f"{name}_copy", function)


def _copies(name: str, parts: Any) -> Any:
    @called(f"{name}_copy", f"Copies of what `{name}` shows.", "torch")
    def function(input: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        return tuple(E.clone(part) for part in parts(input, *args, **kwargs))

    function.__signature__ = signature_of(parts, "input")  # type: ignore[attr-defined]
    return function


METHODS = {f"{name}_copy": _copy(name, view) for name, view in _VIEWS.items()}
METHODS |= {f"{name}_copy": _copies(name, parts) for name, parts in _PARTS.items()}


def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`chunk`; each part may be written in place. As `torch.unsafe_chunk`."""
    return tuple(not_a_view(part) for part in joining.chunk(input, chunks, dim))


def unsafe_split(input: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """`split`; each part may be written in place. As `torch.unsafe_split`."""
    return tuple(not_a_view(part) for part in joining.split(input, split_size_or_sections, dim))


def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """`split_with_sizes`; each part may be written in place. As `torch.unsafe_split_with_sizes`."""
    return tuple(not_a_view(part) for part in regions.split_with_sizes(input, split_sizes, dim))


def slice_inverse(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """The tensor of `src`'s memory of which `slice(dim, start, end, step)` is `input`. As `torch.slice_inverse`."""
    return strides.as_strided(input, tuple(operands.shape(src)), src.stride(), src.storage_offset())
