"""Products: matmul, addmm, einsum."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphc.ops.aval import Aval, size_of
from graphc.ops.dtypes import BOOL, SHORT_NAMES
from graphc.ops.movement import expanded
from graphc.ops.rules import C_NAMES, broadcast_shapes, torch_name
from graphc.ops.samples import Sample
from graphc.ops.spec import Op, Rule, Trait, op

DOT_DTYPES = "dot : expected both vectors to have same dtype, but found {0} and {1}"
# rank of the second operand -> what PyTorch's kernel for such products says of other dtypes
DTYPES = {
    1: "addmv input tensors must have the same dtype, but got {1}, {0}, and {1}",
    3: "expected scalar type {0} but found {1}",
}


def _same_dtype(avals: list[Aval]) -> None:
    a, b = avals
    if a.dtype != b.dtype:
        names = [C_NAMES[SHORT_NAMES[aval.dtype]] for aval in avals]
        text = f"expected m1 and m2 to have the same dtype, but got: {names[0]} != {names[1]}"
        if a.ndim != 2 or b.ndim != 2:
            known = DOT_DTYPES if a.ndim == b.ndim == 1 else DTYPES.get(min(b.ndim, 3), text)
            text = known.format(torch_name(a.dtype), torch_name(b.dtype))
        raise RuntimeError(text)


def _matmul(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    x, y = avals
    if not x.ndim or not y.ndim:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {x.ndim}D and {y.ndim}D")
    _same_dtype(avals)
    if x.dtype == BOOL:
        raise NotImplementedError(f"\"{_product_kernel(x.ndim, y.ndim)}\" not implemented for 'Bool'")
    inner = y.shape[-2] if y.ndim > 1 else y.shape[0]
    if x.shape[-1] != inner:
        raise RuntimeError(matmul_mismatch(x.shape, y.shape))
    batch = broadcast_shapes([x.shape[:-2], y.shape[:-2]])
    return Aval(batch + x.shape[-2:-1] + (y.shape[-1:] if y.ndim > 1 else ()), x.dtype)


def _product_kernel(m: int, n: int) -> str:
    """PyTorch's name for the kernel that multiplies operands of these ranks."""
    if m == n == 1:
        return "dot"
    return "addmv_impl_cpu" if n == 1 else "addmm_impl_cpu_" if n == 2 or m < 3 else "bmm"


def matmul_mismatch(x: tuple[int, ...], y: tuple[int, ...]) -> str:
    if len(x) == 1 and len(y) == 1:
        return (
            f"inconsistent tensor size, expected tensor [{x[0]}] and src [{y[0]}] to have the same number of "
            f"elements, but got {x[0]} and {y[0]} elements respectively"
        )
    if len(y) == 1 and len(x) == 2:
        return f"size mismatch, got input ({x[0]}), mat ({x[0]}x{x[1]}), vec ({y[0]})"
    if len(y) > 2:
        batch = list(broadcast_shapes([x[:-2], y[:-2]]))
        flat = size_of(tuple(batch))
        return (
            f"Expected size for first two dimensions of batch2 tensor to be: [{flat}, {x[-1]}] "
            f"but got: [{flat}, {y[-2]}]."
        )
    rows = size_of(x[:-1])
    inner, columns = (*y, 1)[:2]
    return f"mat1 and mat2 shapes cannot be multiplied ({rows}x{x[-1]} and {inner}x{columns})"


def _addmm(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    for k, name in ((1, "mat1"), (0, "self")):
        if avals[k].dtype != avals[2].dtype:
            found = torch_name(avals[k].dtype), torch_name(avals[2].dtype)
            raise RuntimeError(f"{name} and mat2 must have the same dtype, but got {found[0]} and {found[1]}")
    product = _matmul(op, avals[1:], params)
    return expanded(op, avals[:1], {"shape": product.shape})


def _flops(avals: list[Aval], result: Aval, params: Mapping[str, Any]) -> int:
    return 2 * result.size * avals[-2].shape[-1]


def swap_last(F: Any, x: Any) -> Any:
    """The matrix transpose of the last two axes."""
    return F.permute(x, dims=_swapped(len(x.shape)))


@functools.cache
def _swapped(n: int) -> tuple[int, ...]:
    return (*range(n - 2), n - 1, n - 2)


def _matmul_left(F, g, other, input_shape):
    # g @ other^T, with the vectors of 1-d operands written out as matrices
    vector_x, vector_y = len(input_shape) == 1, len(other.shape) == 1
    if vector_x and vector_y:
        return g * other
    if vector_y:
        return F.reshape(g, shape=(*g.shape, 1)) * other
    if vector_x:
        g = F.reshape(g, shape=(*g.shape[:-1], 1, g.shape[-1]))
        d = g @ swap_last(F, other)
        d = F.reshape(d, shape=(*d.shape[:-2], d.shape[-1]))
        return d
    if len(input_shape) == 2 < len(other.shape):  # one product instead of a sum of many
        n = len(g.shape)
        g, other = F.permute(g, dims=(n - 2, *range(n - 2), n - 1)), swap_last(F, other)
        g = F.reshape(g, shape=(g.shape[0], size_of(g.shape[1:])))
        return F.matmul(g, F.reshape(other, shape=(size_of(other.shape[:-1]), other.shape[-1])))
    return F.matmul(g, swap_last(F, other))


def _matmul_right(F, g, input, other_shape):
    # input^T @ g
    vector_x, vector_y = len(input.shape) == 1, len(other_shape) == 1
    if vector_x and vector_y:
        return g * input
    if vector_x:
        return F.reshape(input, shape=(*input.shape, 1)) * F.reshape(g, shape=(*g.shape[:-1], 1, g.shape[-1]))
    if vector_y:
        g = F.reshape(g, shape=(*g.shape, 1))
        d = swap_last(F, input) @ g
        return F.reshape(d, shape=d.shape[:-1])
    if len(other_shape) == 2 < len(input.shape):  # one product instead of a sum of many
        input, g = (F.reshape(a, shape=(size_of(a.shape[:-1]), a.shape[-1])) for a in (input, g))
    return swap_last(F, input) @ g


def _ref_matmul(x, y):
    """Sums of products, written out; a vector is a row on the left and a column on the right."""
    rows = x[None, :] if x.ndim == 1 else x
    columns = y[:, None] if y.ndim == 1 else y
    product = np.sum(rows[..., :, :, None] * columns[..., None, :, :], axis=-2)
    product = product[..., 0, :] if x.ndim == 1 else product
    return product[..., 0] if y.ndim == 1 else product


def _lifted_matmul(N, x, y):
    batch = broadcast_shapes([x.shape[:-2], y.shape[:-2]])
    b = len(batch)
    rows, columns = len(x.shape) > 1, len(y.shape) > 1  # of 1-d operands one is missing
    x = N.spread(x, (*batch, *x.shape[-2:])) if rows else x
    y = N.spread(y, (*batch, *y.shape[-2:])) if columns else y
    left = [*range(b), b, b + 1] if rows else [b + 1]
    right = [*range(b), b + 1, b + 2] if columns else [b + 1]
    return N.product([x, y], [left, right], [*range(b), *[b] * rows, *[b + 2] * columns])


def _np_matmul(x, y):
    # many products with one matrix are a single, larger one
    if y.ndim == 2 < x.ndim and x.flags.c_contiguous and x.size and y.size and x.dtype == y.dtype:
        result = np.empty((*x.shape[:-1], y.shape[1]), x.dtype)
        np.matmul(x.reshape(-1, x.shape[-1]), y, result.reshape(-1, y.shape[1]))
        return result
    return np.matmul(x, y)


# PyTorch's matmul is one of several functions, by the ranks of its operands
_PRODUCTS = {(1, 1): "DotBackward0", (2, 1): "MvBackward0", (1, 2): "SqueezeBackward4", (2, 2): "MmBackward0"}
matmul = op(
    "matmul", "input other", impl="matmul", numpy=_np_matmul, rule=Rule(_matmul), label="Mm",
    naming=lambda shapes: _PRODUCTS.get((len(shapes[0]), len(shapes[1])), "UnsafeViewBackward0"),
    traits=Trait.BILINEAR | Trait.BROADCASTS | Trait.HOLOMORPHIC | Trait.CONTRACTS,
    flops=_flops, ref=_ref_matmul, lifting=_lifted_matmul, autocast="lower",
    samples=(Sample((3, 4), (4, 2)), Sample((4,), (4,)), Sample((3, 4), (4,)), Sample((4,), (4, 2)),
             Sample((2, 3, 4), (4, 2)), Sample((2, 3), (4, 3, 2)), Sample((0, 4), (4, 2))),
    vjp=dict(input=_matmul_left, other=_matmul_right),
)  # fmt: skip


def _np_addmm(c, x, y):
    product = np.matmul(x, y)
    product += c
    return product


addmm = op(
    "addmm", "input mat1 mat2", impl=lambda xp, c, x, y: xp.matmul(x, y) + c, numpy=_np_addmm, rule=Rule(_addmm),
    traits=Trait.BROADCASTS | Trait.HOLOMORPHIC, flops=_flops, ref=lambda c, x, y: _ref_matmul(x, y) + c,
    lone_term=lambda avals, result, params, is_zero: avals[1].shape[-1] == 1 or is_zero(0, 1),
    lifting=lambda N, c, x, y: N.add(c, _lifted_matmul(N, x, y)),
    samples=(Sample((2,), (3, 4), (4, 2)), Sample((3, 2), (3, 4), (4, 2)), Sample((), (3, 4), (4, 2))),
    vjp=dict(input=lambda F, g: g, mat1=lambda F, g, mat2: g @ swap_last(F, mat2),
             mat2=lambda F, g, mat1: swap_last(F, mat1) @ g),
)  # fmt: skip


# einsum: `equation` is explicit and without ellipsis or repeated letters in one operand: eager/functional/einsums.py
# brings every form that PyTorch takes to this one
def split_equation(equation: str) -> tuple[list[str], str]:
    """("ij,jk->ik") -> (["ij", "jk"], "ik")"""
    left, _, right = equation.partition("->")
    return left.split(","), right


def _einsum(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    terms, out = split_equation(params["equation"])
    if len(terms) != len(avals):
        more = "fewer" if len(avals) < len(terms) else "more"
        raise RuntimeError(f"einsum(): {more} operands were provided than specified in the equation")
    sizes: dict[str, int] = {}
    for position, (term, aval) in enumerate(zip(terms, avals, strict=True)):
        if len(term) != aval.ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(term)}) does not match the number of "
                f"dimensions ({aval.ndim}) for operand {position} and no ellipsis was given"
            )
        for letter, size in zip(term, aval.shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                raise RuntimeError(
                    f"einsum(): subscript {letter} has size {size} for operand {position} which does not "
                    f"broadcast with previously seen size {sizes[letter]}"
                )
    for letter in out:
        if letter not in sizes:
            raise RuntimeError(
                f"einsum(): output subscript {letter} does not appear in the equation for any input operand"
            )
    return Aval(tuple(sizes[letter] for letter in out), avals[0].dtype)


def _einsum_vjp(F, g, operands, operands_shape, equation, position):
    # the gradient of one operand contracts the cotangent with all the others; letters that only this operand has
    # were summed over, and come back by broadcasting
    terms, out = split_equation(equation)
    mine, shape = terms[position], operands_shape[position]
    others = [i for i in range(len(terms)) if i != position]
    seen = set(out).union(*(terms[i] for i in others))
    reachable = "".join(c for c in mine if c in seen)
    inputs = ",".join([out, *(terms[i] for i in others)])
    d = F.einsum(g, *(operands[i] for i in others), equation=f"{inputs}->{reachable}")
    if reachable != mine:
        d = F.reshape(d, shape=tuple(n if c in seen else 1 for c, n in zip(mine, shape, strict=True)))
        d = F.broadcast_to(d, shape=shape)
    return d


def _ref_einsum(*operands, equation):
    terms, out = split_equation(equation)
    letters = sorted(set("".join(terms)))
    product = 1.0
    for term, x in zip(terms, operands, strict=True):
        order = sorted(range(len(term)), key=lambda i: term[i])
        spread = iter(np.transpose(x, order).shape)
        product = product * np.transpose(x, order).reshape([next(spread) if c in term else 1 for c in letters])
    total = np.sum(product, axis=tuple(i for i, c in enumerate(letters) if c not in out))
    kept = [c for c in letters if c in out]
    return np.transpose(total, [kept.index(c) for c in out])


def _einsum_flops(avals: list[Aval], result: Aval, params: Mapping[str, Any]) -> int:
    terms, _ = split_equation(params["equation"])
    sizes = {c: n for term, aval in zip(terms, avals, strict=True) for c, n in zip(term, aval.shape, strict=True)}
    return functools.reduce(lambda total, n: total * n, sizes.values(), len(terms))


def _einsum_of_single_terms(
    avals: list[Aval], result: Aval, params: Mapping[str, Any], is_zero: Callable[[int, float], bool]
) -> bool:
    """Whether it sums, and along sizes of 1 only: without a letter to sum along, it is a product."""
    terms, out = split_equation(params["equation"])
    return {*out} != {*"".join(terms)} and _einsum_flops(avals, result, params) <= len(avals) * result.size


def _xp_einsum(xp: Any, *operands: Any, equation: str) -> Any:
    terms, out = split_equation(equation)
    if len(operands) == 1 or {*out} != {*"".join(terms)} or any(len({*term}) < len(term) for term in terms):
        return xp.einsum(equation, *operands, optimize=len(operands) > 2)
    # nothing is summed up: a product of matrices would lose the signs of zeros
    laid = []
    for x, term in zip(operands, terms, strict=True):
        turned = xp.transpose(x, [term.index(k) for k in out if k in term])
        laid.append(turned[tuple(slice(None) if k in term else None for k in out)])
    return functools.reduce(lambda x, y: x * y, laid)


@functools.lru_cache
def _pairs(equation: str, *shapes: tuple[int, ...]) -> list[tuple[tuple[int, ...], str]]:
    """Which operands to contract one after the other, each result the last operand of the next step."""
    terms, out = split_equation(equation)
    sizes = {k: n for term, shape in zip(terms, shapes, strict=True) for k, n in zip(term, shape, strict=True)}
    steps = []
    while len(terms) > 1:  # the pair whose loop is shortest comes first
        loops = {
            (i, j): math.prod([sizes[c] for c in {*terms[i], *terms[j]}])
            for i, j in itertools.combinations(range(len(terms)), 2)
        }
        pair = min(loops, key=loops.__getitem__)
        given, terms = [terms[k] for k in pair], [term for k, term in enumerate(terms) if k not in pair]
        needed = set(out).union(*terms)
        made = out if not terms else "".join(k for k in dict.fromkeys("".join(given)) if k in needed)
        steps.append((pair, f"{','.join(given)}->{made}"))
        terms.append(made)
    return steps


def _np_einsum(*operands, equation):
    """Two operands as a matrix product, or many; more two by two: NumPy's own einsum is a loop without BLAS."""
    terms, out = split_equation(equation)
    if len(operands) > 2:
        for pair, step in _pairs(equation, *(x.shape for x in operands)):
            rest = [x for k, x in enumerate(operands) if k not in pair]
            operands = (*rest, _np_einsum(*(operands[k] for k in pair), equation=step))
        return operands[0]
    if len(operands) != 2 or operands[0].dtype != operands[1].dtype or operands[0].dtype.char not in "fdFD":
        return np.einsum(equation, *operands)
    (x, y), (a, b) = operands, terms
    left, right = ([k for k in own if k not in other] for own, other in ((a, b), (b, a)))
    batch, over = ([k for k in a if k in b and (k in out) == kept] for kept in (True, False))
    alone = {*left, *right} - {*out}
    if alone:  # summed up before, as in PyTorch, where no sum is -0
        axes = [tuple([n for n, k in enumerate(own) if k in alone]) for own in terms]
        less = [x.sum(axis) + 0 if axis else x for x, axis in zip(operands, axes, strict=True)]
        inner = ",".join(["".join([k for k in own if k not in alone]) for own in terms])
        return _np_einsum(*less, equation=f"{inner}->{out}")
    if right and out.index(right[0]) < min(map(out.index, left), default=len(out)):
        x, y, a, b, left, right = y, x, b, a, right, left  # so that the result lies as it comes
    sizes = dict(zip(a + b, x.shape + y.shape, strict=True))

    def laid(array, letters, *groups):
        shape = [math.prod([sizes[k] for k in group]) for group in groups]
        return array.transpose([letters.index(k) for group in groups for k in group]).reshape(shape)

    groups = ((batch, left, over), (batch, over, right)) if batch else ((left, over), (over, right))
    product = (np.matmul if over else np.multiply)(laid(x, a, *groups[0]), laid(y, b, *groups[1]))
    order = [*batch, *left, *right]
    product = product.reshape([sizes[k] for k in order]).transpose([order.index(k) for k in out])
    return product if product.flags.c_contiguous else product.copy("C")


def _lifted_einsum(N, *operands, equation):
    terms, out = split_equation(equation)
    return N.product(operands, [[*map(ord, term)] for term in terms], [*map(ord, out)])


einsum = op(
    "einsum", "*operands", params={"equation": ""}, rule=Rule(_einsum), flops=_einsum_flops,
    ref=_ref_einsum, traits=Trait.HOLOMORPHIC | Trait.CONTRACTS,
    impl=_xp_einsum, numpy=_np_einsum, lone_term=_einsum_of_single_terms,
    lifting=_lifted_einsum,
    vjp=dict(operands=_einsum_vjp),
    samples=(Sample((3, 4), (4, 2), equation="ij,jk->ik"), Sample((3, 4), equation="ij->j"),
             Sample((2, 3), (3, 4), (4, 2), equation="ij,jk,ki->"), Sample((2, 3, 4), (2, 4, 3), equation="bij,bji->b"),
             Sample((3,), (4,), equation="i,j->ji"), Sample((3, 4), (4, 2), equation="ij,jk->ij"),
             Sample((3,), (2, 3), equation="i,ji->i")),
)  # fmt: skip
