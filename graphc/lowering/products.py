"""Products of two arrays that sum over one dimension, that read operands transposed or give a transposed result.

XLA folds a transpose into the product; but for a vector it would copy the matrix, and beside one that is narrow, a
large matrix is read several times as fast on the left if it is summed over its columns, and on the right if over its
rows: A^T B had better be (B^T A)^T, and B^T A^T (A B)^T. Of many matrices that lie between each other, times a vector
each, XLA would lay out all anew: one loop multiplies and adds up. Of other products the operand whose dimensions come
last in the result is the right one: what XLA computes is laid out anew in longer pieces, or not at all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import NamedTuple

from graphc.ir.graph import Node
from graphc.ir.matrices import product_letters
from graphc.ops import OPS
from graphc.ops.dtypes import is_half, is_inexact

# measured on one core: columns of a matrix, at most, for which the transposed product is the faster one; how often they
# go into the rows of the other, if that is summed over its rows; and the elements that it has, if over its columns
NARROW, WIDE, LARGE = 64, 4, 2**16
LONG = 64  # products that are added up for an element, at least, for which a loop is the faster one
_MATMUL, _PERMUTE, _EINSUM = OPS["matmul"], OPS["permute"], OPS["einsum"]


class _Operand(NamedTuple):
    """An array, by name, and a letter for each of its dimensions."""

    name: str
    shape: tuple[int, ...]
    letters: str


def product(node: Node, nodes: Mapping[int, Node], names: Mapping[int, str], uses: Mapping[int, int]) -> str | None:
    """Python source for `node` of the graph with `nodes`, if it is a product that is better written so; else None.

    uses: how often each node is read.
    """
    inner, turned = node, False
    if node.op is _PERMUTE and node.params["dims"] == (1, 0):
        inner, turned = nodes[node.inputs[0]], True
        if inner.op not in (_MATMUL, _EINSUM) or uses[inner.id] > 1:
            return None
    letters = product_letters(inner, nodes)
    if letters is None or not _is_exact(inner, nodes):
        return None
    left, right, out = letters
    *bias, first, second = inner.inputs
    a, b = (_read(nodes[id], own, nodes, names) for id, own in ((first, left), (second, right)))
    if inner is node and inner.op is not _EINSUM and (a.name, b.name) == (names[first], names[second]):
        return None  # as JAX's own
    out = out[::-1] if turned else out
    few, many = sorted((a, b), key=lambda x: len(x.letters))
    text = _written(a, b, out) or _looped(few, many, out)
    if text is None and inner is node and _ends(right, left, out) > _ends(left, right, out):
        return f"jnp.einsum('{right},{left}->{out}', {names[second]}, {names[first]})"
    return f"jnp.add({text}, {names[bias[0]]})" if bias and text else text


def _is_exact(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether a product is computed in the dtype that its operands have."""
    alike = all(nodes[i].dtype == node.dtype for i in node.inputs)
    return alike and is_inexact(node.dtype) and not is_half(node.dtype)


def _read(node: Node, letters: str, nodes: Mapping[int, Node], names: Mapping[int, str]) -> _Operand:
    """An operand, or what it is the transpose of."""
    if node.op is _PERMUTE and node.params["dims"] == (1, 0):
        return _Operand(names[node.inputs[0]], nodes[node.inputs[0]].shape, letters[::-1])
    return _Operand(names[node.id], node.shape, letters)


def _written(a: _Operand, b: _Operand, out: str) -> str | None:
    """The product with the letters `out`; None for another than one that sums over one letter, at an end of both."""
    shared = set(a.letters) & set(b.letters)
    if len(shared) != 1 or len({*a.letters}) < len(a.letters) or len({*b.letters}) < len(b.letters):
        return None
    (k,) = shared
    if any(k not in (x.letters[0], x.letters[-1]) for x in (a, b)):
        return None
    if out and out[0] in b.letters:
        a, b = b, a
    left, right = (x.letters.replace(k, "") for x in (a, b))
    if out != left + right:
        return None
    sizes = [[n for n, letter in zip(x.shape, x.letters, strict=True) if letter != k] for x in (a, b)]
    if left and right and all(type(n) is int for n in itertools.chain(*sizes)):
        rows, columns = map(math.prod, sizes)
        turned = (WIDE * columns <= rows and a.letters[0] == k) or (
            rows < columns and b.letters[-1] == k and math.prod(b.shape) >= LARGE
        )
        if turned and min(rows, columns) <= NARROW:
            dims = (*range(len(right), len(out)), *range(len(right)))
            return f"lax.transpose(lax.optimization_barrier({_dot(b, a, k)}), {dims})"
    return _dot(a, b, k)


def _ends(left: str, right: str, out: str) -> int:
    """With how many dimensions the product of two operands, as XLA computes it, ends like the result."""
    free = [k for own, other in ((left, right), (right, left)) for k in own if k not in other]
    made = [*[k for k in left if k in right and k in out], *free]
    return sum(itertools.takewhile(bool, (a == b for a, b in zip(reversed(made), reversed(out), strict=False))))


def _looped(vectors: _Operand, matrices: _Operand, out: str) -> str | None:
    """The products of matrices that lie between each other with a vector each; None for other ones."""
    letters, own = matrices.letters, vectors.letters
    if len(letters) != 3 or len({*letters}) < 3 or len(own) != 2 or letters[1] not in own or letters[1] not in out:
        return None
    (k,) = {*own} - {letters[1]}
    if k not in letters or {*out} != {*letters} - {k} or not all(type(n) is int for n in matrices.shape):
        return None
    axis = letters.index(k)
    if matrices.shape[axis] < LONG or math.prod(matrices.shape) < LARGE:
        return None
    dims = [letters.index(letter) for letter in own]
    given = vectors.name if dims == sorted(dims) else f"lax.transpose({vectors.name}, (1, 0))"
    spread = f"lax.broadcast_in_dim({given}, {matrices.shape}, {tuple(sorted(dims))})"
    found = f"lax.reduce_sum(lax.mul({matrices.name}, {spread}), ({axis},))"
    return found if letters.replace(k, "") == out else f"lax.transpose({found}, (1, 0))"


def _dot(a: _Operand, b: _Operand, k: str) -> str:
    i, j = a.letters.index(k), b.letters.index(k)
    return f"lax.dot_general({a.name}, {b.name}, ((({i},), ({j},)), ((), ())))"
