"""Wrong sums of products: what ops say, places, plans, brackets, runs of terms; and wrong parts of arrays."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import eager as torch
from compare.selftest.fault import Fault, Trials
from compare.selftest.fault import of_pass as _fault
from compare.selftest.planting import Plant, declared, edited, wrapped
from compare.selftest.trials import numbers, program
from graphc.normal import affine, emit, factor, form, merge, plan, write
from graphc.ops import OPS, parts
from graphc.ops.parts import Parts
from graphc.passes import monomials, picks

SUMS, DEMAND, LIKE = "sums of products", "demand", "like terms"
N = 40


def _lifting(op: str, lifting: Callable[..., Any]) -> Plant:
    """`op` says that it is something else."""
    return lambda: declared(OPS[op], lifting=lifting)


def _lifted(what: str, op: str, lifting: Callable[..., Any], trials: Trials) -> Fault:
    return _fault(f"{op} {what}", SUMS, _lifting(op, lifting), trials)


def _reading(op: str, wrong: Parts) -> Plant:
    return lambda: declared(OPS[op], parts=wrong)


_square, _other, _third = numbers(N, N), numbers(N, N, seed=6), numbers(N, N, seed=7)
_x, _y = numbers(N), numbers(N, seed=6)
_thin, _wide = numbers(N, 4), numbers(4, N, seed=6)


def _other_end(sound: Any) -> Any:
    return lambda F, x, axis, *, first, descending: sound(F, x, axis, first=not first, descending=descending)


_tiny, _huge = np.full(3, 1e-30, np.float32), np.full(3, 1e25, np.float32)

FAULTS: tuple[Fault, ...] = (
    # what ops say
    _lifted("keeps its order", "permute", lambda N, x, dims: x, program(lambda h, x: h.T @ h @ x, _square, _x)),
    _lifted("adds", "sub", lambda N, x, y: N.add(x, y),
            program(lambda a, h, x: (a - h.T @ h) @ x, _square, _other, _x)),
    _lifted("keeps its sign", "neg", lambda N, x: x, program(lambda a, b, x: (-a) @ b @ x, _square, _other, _x)),
    _lifted("sums up", "mean", lambda N, x, axis, keepdims: N.sum(x, axis, keepdims),
            program(lambda a, b: (a @ b).mean(0), _square, _other)),
    _lifted("is a copy", "flip", lambda N, x, axis: x, program(lambda a, b: (a @ b).flip(0)[:2], _square, _other)),
    _lifted("begins at the start", "slice", lambda N, x, start, stop, step: N.take(
        x, [-(-(b - a) // s) for a, b, s in zip(start, stop, step, strict=True)],
        lambda *places: [i * s for i, s in zip(places, step, strict=True)]),
        program(lambda a, b: (a @ b)[2, 2], _square, _other)),
    _lifted("is not transposed", "matmul", lambda N, x, y: N.product([x, y], [[0, 1], [2, 1]], [0, 2]),
            program(lambda a, b, x: a @ b @ x[:, None], _square, _other, _x)),
    _lifted("forgets what it adds", "addmm", lambda N, x, a, b: N.product([a, b], [[0, 1], [1, 2]], [0, 2]),
            program(lambda c, a, b, x: torch.nn.functional.linear(a, b, c) @ x, _x, _square, _other, _y)),
    _lifted("is linear", "square", lambda N, x: x, program(lambda u, v: ((u @ v) ** 2).sum(), _thin, _wide)),
    _lifted("multiplies", "div", lambda N, x, y: N.mul(x, y),
            program(lambda a, b, x: (a / 4.0) @ b @ x, _square, _other, _x)),
    # mechanisms
    _fault("numbers dropped", SUMS, wrapped(emit._Writer, "_scaled", lambda sound: lambda self, part: part),
           program(lambda a, x: (3.0 * a) @ a @ x, _square, _x)),
    _fault("offsets dropped", SUMS, edited(emit, "digits", ("place.offset, turned)", "0, turned)")),
           program(lambda a, b: (a @ b)[3:5], _square, _other)),
    _fault("reversals dropped", SUMS, edited(emit, "digits", (
        "place.offset, turned)", "place.offset, frozenset())")),
           program(lambda a, b: (a @ b).flip(0)[:, 1], _square, _other)),
    _fault("solutions one further", SUMS, edited(affine.Equations, "solved", (
        "return index.at(self.value)", "return found + 1 if (found := index.at(self.value)).offset else found")),
           program(lambda a, b: (a @ b)[3], _square, _other)),
    _fault("products mistaken for each other", SUMS, edited(plan._Alike, "_named", (
        "(tuple(sorted([f.atom for f in order])), tuple(key), flags)", "tuple([f.atom for f in order])")),
           program(lambda a, b: a.T @ b @ (a @ b), _square, _other)),
    _fault("signs lost in brackets", SUMS, edited(factor, "_taken_out", (
        "_within(term.coefficient,", "_within(abs(term.coefficient),")),
           program(lambda a, b, c: a @ b - a @ c, _square, _other, _third)),
    _fault("rows of a run all the first", SUMS, edited(merge, "_run", (
        "_indices(t), step,", "_indices(t), [s * (k < len(t.places)) for k, s in enumerate(step)],")),
           program(lambda x, w: sum(torch.outer(x[t], w[t]) for t in range(8)), _square, _other)),
    _fault("the last term dropped", SUMS, wrapped(write, "merged", lambda sound: lambda f: f._replace(
        terms=sound(f).terms[:1] or f.terms)), program(lambda a, h, x: (a - h.T @ h) @ x, _square, _other, _x)),
    _fault("fractions rounded", SUMS, wrapped(
        form.Algebra, "ratio", lambda sound: lambda self, a, b: Fraction(a // b or 1)),
           program(lambda a, b: (a @ b).mean(1), _square, _other)),
    _fault("taken once", LIKE, edited(monomials._Algebra, "add", (
        "in y.items():", "in [(k, c) for k, c in y.items() if k not in x]:")),
           program(lambda x, y: x.sin() * y * 2.0 + (y * x.sin() * 3.0 + x), _x, _y)),
    _fault("factors taken twice", LIKE, wrapped(
        monomials, "_without", lambda sound: lambda key, factor: key if len(factor) == 1 else sound(key, factor)),
           program(lambda x, y: x * torch.sin(y) + x * torch.cos(y), _x, _y)),
    _fault("any product may overflow", LIKE, wrapped(
        monomials._Writer, "_part_of", lambda sound: lambda self, key: key[-1:]),
           program(lambda g, x: (g * x * x, x * g * x * 3.0), _tiny, _huge)),
    # parts that are read
    _fault("slices read from the start", DEMAND, _reading("slice", parts.SLICE._replace(
        reads=lambda box, shape, params: tuple([(0, b - a) for a, b in box]))),
        program(lambda x: torch.tanh(x.detach())[3:6], _square)),
    _fault("flips read as they are", DEMAND, _reading("flip", parts.POINTWISE),
           program(lambda x: torch.exp(x).flip(0)[1:4], _square)),
    _fault("permutations read as they are", DEMAND, _reading("permute", parts.POINTWISE),
           program(lambda x: torch.sin(torch.exp(x).T)[2], _square)),
    _fault("rows of softmax cut", DEMAND, _reading("softmax", parts.POINTWISE),
           program(lambda x: torch.softmax(x, 1)[:, 3], _square)),
    _fault("cumulations begin where they are read", DEMAND, _reading("cumsum", parts.POINTWISE),
           program(lambda x: torch.cumsum(x, 0)[4:7], _square)),
    _fault("the first for the last", DEMAND, wrapped(parts, "_extreme", _other_end),
           program(lambda x: torch.sort(x, 0).values[-1], _square)),
    _fault("columns of a product for its rows", DEMAND, wrapped(
        picks.Picks, "_of_product", lambda sound: lambda self, node, pick: sound(self, node, pick._replace(after=0))),
           program(lambda a, b, i: (a @ b)[i], _square, _square, np.array([2, 1]))),
    _fault("parts laid in reverse", "support", edited(picks.Picks, "laid", (
        "F.index_put(zeros, part,", "F.index_put(zeros, F.flip(part, axis=(0,)),")),
           program(lambda a, i: a.exp()[i], _square, np.array([2, 1]))),
)  # fmt: skip
