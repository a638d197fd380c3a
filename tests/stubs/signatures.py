"""The forms of functions that can be called in several ways, or whose result depends on an argument: `forms_of/*.txt`.

A line there is one overload, in the order in which they are tried. `{new}` stands for what functions that make a tensor
take, `{like}` for what those take that make one like another, `{seeded}` for `{new}` with a generator.
"""

from __future__ import annotations

from pathlib import Path

_NEW = (
    "dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: bool = False, "
    "requires_grad: bool = False"
)
MACROS = {
    "new": f"out: Tensor | None = None, {_NEW}",
    "plain": _NEW,
    "like": f"{_NEW}, memory_format: memory_format | None = None",
    "seeded": f"generator: Generator | None = None, out: Tensor | None = None, {_NEW}",
    "numbers": "Tensor | Number | complex",
    "pair": "out: tuple[Tensor, Tensor] | None = None",
}


def _read(name: str) -> str:
    return (Path(__file__).parent / "forms_of" / f"{name}.txt").read_text()


TORCH, TENSOR, FUNCTIONAL, LINALG, AUTOGRAD = map(_read, ("torch", "tensor", "functional", "linalg", "autograd"))
