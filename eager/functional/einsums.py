"""`einsum` in every form that PyTorch takes, brought to the explicit one of the registry."""

from __future__ import annotations

import functools
import string
from typing import Any

import numpy as np

from eager.core.tensor import Tensor
from eager.engine.conversion import converted
from eager.engine.language import E
from eager.engine.node_names import named
from eager.functional.shapes import diagonal
from graphc.ops.dtypes import BOOL, promote_types
from graphc.ops.rules import accumulation_dtype, torch_name

COUNT = "einsum(): {more} operands were provided than specified in the equation"
MISSING = "einsum(): output subscript {letter} does not appear in the equation for any input operand"
TWICE = "einsum(): output subscript {letter} appears more than once in the output"
DIMS = (
    "einsum(): the number of subscripts in the equation ({subscripts}) {relation} the number of dimensions ({ndim}) "
    "for operand {position}{tail}"
)
SIZES = (
    "einsum(): subscript {letter} has size {size} for operand {position} which does not broadcast with previously seen "
    "size {seen}"
)
LETTERS = string.ascii_uppercase + string.ascii_lowercase


def einsum(*args: Any) -> Tensor:
    """Sums of products in Einstein's notation: `einsum("ij,jk->ik", x, y)` or `einsum(x, [0, 1], y, [1, 2], [0, 2])`.

    As `torch.einsum`: an ellipsis stands for broadcast dims, a repeated letter for a diagonal, and without "->" the
    output has the letters that occur once, sorted. Raises RuntimeError as PyTorch does.
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    equation, operands = args[0], args[1:]
    if isinstance(equation, Tensor):
        equation, operands = from_sublists(args)
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    terms, output = parse(equation, tuple(len(x._d.shape) for x in operands))
    prepared = [_without_repeats(x, term, i) for i, (x, term) in enumerate(zip(operands, terms, strict=True))]
    sizes = _sizes(prepared)
    kept = [_without_broadcast(x, term, sizes) for x, term in prepared]
    for letter in output:
        if letter not in sizes:
            raise RuntimeError(MISSING.format(letter=letter))
    dtype = _dtype(prepared, output)
    first, letters = kept[0]
    if len(kept) == 1 and sorted(letters) == sorted(output) and first._dtype() == dtype:  # a view
        result = E.permute(first, dims=tuple(map(letters.index, output)))
    else:
        equation = ",".join(term for _, term in kept) + "->" + output
        result = E.einsum(*(converted(x, dtype) for x, _ in kept), equation=equation)
    return named(result, _last_step([term for _, term in prepared], output))


def _dtype(prepared: list[tuple[Tensor, str]], output: str) -> np.dtype:
    """The dtype of the result: operands are taken in pairs, from the left, as PyTorch does.

    Sums over one operand alone turn integers into int64; a product promotes; contractions take one dtype, not bool.
    """
    dtype = prepared[0][0]._dtype()
    sizes = [dict(zip(term, x._d.shape, strict=True)) for x, term in prepared]
    if any(0 in size.values() for size in sizes):
        return dtype
    last = {letter: i for i, size in enumerate(sizes) for letter, n in size.items() if n != 1}
    summed = [letter for letter in last if letter not in output]
    alone = len(prepared) == 1 and not sizes[0].keys() <= set(output)
    if alone or any(last[letter] == 0 for letter in summed):
        dtype = accumulation_dtype(dtype)
    for i, (x, _) in enumerate(prepared[1:], 1):
        here = [letter for letter in summed if last[letter] == i]
        contracted = [letter for letter in here if any(size.get(letter, 1) != 1 for size in sizes[:i])]
        other = x._dtype() if len(contracted) == len(here) else accumulation_dtype(x._dtype())
        if contracted:
            dtype = other = contracted_dtype(dtype, other)
        dtype = promote_types(dtype, other)
    return dtype


def contracted_dtype(first: np.dtype, second: np.dtype) -> np.dtype:
    """The dtype of a contraction of two operands. RuntimeError unless they have one, NotImplementedError for bool."""
    if first != second:
        raise RuntimeError(f"expected scalar type {torch_name(first)} but found {torch_name(second)}")
    if first == BOOL:
        raise NotImplementedError("\"bmm\" not implemented for 'Bool'")
    return first


def _last_step(terms: list[str], output: str) -> str:
    """The name of the node of PyTorch's last step: operands are taken in pairs, from the left."""
    dropped = set("".join(terms) if len(terms) < 3 else terms[-1]) - set(output)
    if len(terms) == 1:
        return "SumBackward1" if dropped else "PermuteBackward0"
    return "ViewBackward0" if dropped else "MulBackward0"


def from_sublists(args: tuple[Any, ...]) -> tuple[str, list[Tensor]]:
    """(x, [0, 1], y, [1, 2], [0, 2]) as an equation and operands."""
    operands, terms = list(args[0 : len(args) // 2 * 2 : 2]), list(args[1::2])
    text = ",".join(map(_subscripts, terms))
    return (f"{text}->{_subscripts(args[-1])}" if len(args) % 2 else text), operands


def _subscripts(sublist: Any) -> str:
    for n in sublist:
        if n is not ... and not 0 <= n < len(LETTERS):
            raise RuntimeError(
                f"einsum(): subscript in subscript list is not within the valid range [0, {len(LETTERS)})"
            )
    return "".join("..." if n is ... else LETTERS[n] for n in sublist)


@functools.lru_cache(maxsize=256)
def parse(equation: str, ndims: tuple[int, ...]) -> tuple[list[str], str]:
    """The letters of each operand and of the output, with an ellipsis written out as letters that are free.

    They are counted from the right, so that operands of different depth line up.
    """
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ndims):
        raise RuntimeError(COUNT.format(more="fewer" if len(ndims) < len(terms) else "more"))
    for at, letter in enumerate(left):
        if not (letter.isascii() and letter.isalpha()) and letter not in ".,":
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {_place(equation, at)} in the equation string, subscripts "
                "must be in [a-zA-Z]"
            )
    depths = [
        _ellipsis_depth(term, ndim, position) for position, (term, ndim) in enumerate(zip(terms, ndims, strict=True))
    ]
    deepest = max(depths, default=0)
    spare = [c for c in LETTERS if c not in text][:deepest]
    if len(spare) < deepest:
        raise RuntimeError("einsum(): too many subscripts")
    inputs = [t.replace("...", "".join(spare[deepest - d :])) for t, d in zip(terms, depths, strict=True)]
    if not arrow:
        once = sorted(c for c in set(left) - set(",.") if left.count(c) == 1)
        return inputs, "".join(spare) + "".join(once)
    output = right.replace("...", "".join(spare))
    for letter in output:
        if not letter.isalpha():
            raise RuntimeError(f"einsum(): invalid subscript given in the output: {letter}")
        if output.count(letter) > 1:
            raise RuntimeError(TWICE.format(letter=letter))
    return inputs, output


def _place(equation: str, at: int) -> int:
    """Where the character that is number `at` without spaces stands in `equation`."""
    return [place for place, letter in enumerate(equation) if letter != " "][at]


def _ellipsis_depth(term: str, ndim: int, position: int) -> int:
    """How many dims the ellipsis of `term` stands for. Raises RuntimeError if the letters do not fit `ndim`."""
    letters = term.replace("...", "", 1)
    for letter in letters:
        if letter == ".":
            raise RuntimeError(f"einsum(): found '.' for operand {position} that is not part of any ellipsis")
    has_ellipsis = "..." in term
    if len(letters) > ndim or (len(letters) < ndim and not has_ellipsis):
        relation = "is more than" if has_ellipsis else "does not match"
        tail = "" if has_ellipsis else " and no ellipsis was given"
        raise RuntimeError(
            DIMS.format(subscripts=len(letters), relation=relation, ndim=ndim, position=position, tail=tail)
        )
    return ndim - len(letters)


def _without_repeats(x: Tensor, term: str, position: int) -> tuple[Tensor, str]:
    """Letters that occur twice in `term` taken as diagonals."""
    for letter in term:
        while term.count(letter) > 1:
            i = term.index(letter)
            j = term.index(letter, i + 1)
            if x._d.shape[i] != x._d.shape[j]:
                raise RuntimeError(
                    f"einsum(): subscript {letter} is repeated for operand {position} but the sizes don't match, "
                    f"{x._d.shape[j]} != {x._d.shape[i]}"
                )
            x = diagonal(x, 0, i, j)
            term = term[:i] + term[i + 1 : j] + term[j + 1 :] + letter
    return x, term


def _sizes(prepared: list[tuple[Tensor, str]]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for position, (x, term) in enumerate(prepared):
        for letter, size in zip(term, x._d.shape, strict=True):
            seen = sizes.setdefault(letter, size)
            if size != seen and 1 not in (size, seen):
                raise RuntimeError(SIZES.format(letter=letter, size=size, position=position, seen=seen))
            sizes[letter] = size if seen == 1 else seen
    return sizes


def _without_broadcast(x: Tensor, term: str, sizes: dict[str, int]) -> tuple[Tensor, str]:
    """Dims of size 1 that another operand broadcasts dropped: that operand alone says how far they run."""
    shape = x._d.shape
    kept = [(letter, n) for letter, n in zip(term, shape, strict=True) if n == sizes[letter]]
    if len(kept) == len(shape):
        return x, term
    return E.reshape(x, shape=tuple(n for _, n in kept)), "".join(letter for letter, _ in kept)
