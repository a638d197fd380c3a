"""Wrong systems of equations: facts about matrices, inverses by structure, solutions, shared factorizations."""

from __future__ import annotations

from typing import Any

import numpy as np

import eager as torch
from compare.selftest.fault import Fault
from compare.selftest.fault import of_lowering as _lowered
from compare.selftest.fault import of_pass as _fault
from compare.selftest.planting import Plant, attribute, declared, edited, wrapped
from compare.selftest.trials import numbers, program
from graphc.lowering import source
from graphc.normal import lift
from graphc.ops import OPS
from graphc.ops.dtypes import FLOAT64
from graphc.passes import diagonals, inverses, low_rank, solves

N = 12
LARGE = 70  # rows from which factorizations are shared
INVERSES, SYSTEMS = "inverses", "systems"
inv, solve = torch.linalg.inv, torch.linalg.solve


def _matrix(n: int = N, seed: int = 5) -> np.ndarray:
    return numbers(n, n, low=-0.2, high=0.2, dtype=FLOAT64, seed=seed) + 2 * np.roll(np.eye(n), 1, 0)


def _eye() -> Any:
    return torch.eye(N, dtype=torch.float64)


_a, _b = _matrix(), _matrix(seed=6)
_lower = numbers(N, N, low=-0.2, high=0.2, dtype=FLOAT64) + 3 * np.eye(N)
_x = numbers(N, dtype=FLOAT64)
_thin = numbers(N, 3, dtype=FLOAT64)


def kernel_on_factors(name: str, wrong: Any) -> Plant:
    """`wrong(the sound kernel, ...)` in place of a kernel on factors."""

    def plant() -> Any:
        kernels = dict(source.factors.KERNELS)
        sound = kernels[name]
        kernels[name] = lambda *args, **params: wrong(sound, *args, **params)
        return attribute(source.factors, "KERNELS", kernels)

    return plant


_large, _spd = _matrix(LARGE), _matrix(LARGE) @ _matrix(LARGE).T + np.eye(LARGE)
_y = numbers(LARGE, dtype=FLOAT64)

FAULTS: tuple[Fault, ...] = (
    # facts
    _fault("triangles are diagonals", INVERSES, lambda: declared(OPS["tril"], band=lambda shape, params, x: (0, 0)),
           program(lambda a, x: solve(torch.tril(a), x), _lower, _x)),
    _fault("a triangle is the other one", SYSTEMS,
           lambda: declared(OPS["triu"], band=lambda shape, params, x: (shape[-1] - 1, 0)),
           program(lambda a, x: solve(torch.triu(a), x), _lower, _x)),
    _fault("coefficients are never negative", INVERSES, wrapped(
        low_rank.LowRank, "_half",
        lambda sound: lambda self, t: sound(self, t._replace(coefficient=abs(t.coefficient)))),
        program(lambda u, x: solve(3 * _eye() - 0.01 * u @ u.T, x), _thin, _x)),
    # by structure
    _fault("factors in their order", INVERSES, wrapped(
        inverses._Writer, "_factors", lambda sound: lambda self, x: (lambda f: f and f[::-1])(sound(self, x))),
        program(lambda a, b, x: inv(a @ b) @ x, _a, _b, _x)),
    _fault("transposes dropped", INVERSES, wrapped(inverses, "swap_last", lambda sound: lambda F, x: x),
           program(lambda a, x: inv(a.T) @ x, _a, _x)),
    _fault("blocks that overlap", INVERSES, wrapped(
        inverses._Writer, "_blocks",
        lambda sound: lambda self, x: [(0, x.shape[0] // 2), (x.shape[0] // 2, x.shape[0])]),
        program(lambda a, x: solve(a, x), _a, _x)),
    _fault("a wrong core", INVERSES, edited(low_rank.LowRank, "_core", (
        "c, diagonal_matrix(", "c, 1.5 * diagonal_matrix(")),
           program(lambda u, x: solve(_eye() + u @ u.T, x), _thin, _x)),
    _fault("logarithms of one factor", INVERSES, wrapped(inverses, "_both", lambda sound: lambda a, b: a),
           program(lambda a, b: torch.linalg.slogdet(a @ b)[1], _a, _b)),
    _fault("diagonals as they are", INVERSES, wrapped(
        inverses, "diagonal_matrix", lambda sound: lambda F, d: sound(F, F.reciprocal(d))),
        program(lambda d, x: solve(torch.diag(d), x), _x, _x)),
    _fault("matrices that cancel anything", "sums of products", wrapped(
        lift, "_is_summed", lambda sound: lambda place, term, pair: True),
        program(lambda a, x: torch.linalg.inv_ex(a).inverse @ (a * x[:, None]), _a, _x)),
    # solutions
    _fault("solved with the transpose", SYSTEMS, wrapped(solves._Writer, "_solved",
        lambda sound: lambda self, inverse, turned, b: sound(self, inverse, not turned, b)),
           program(lambda a, x: inv(a) @ x, _a, _x)),
    _fault("a diagonal that is not inverted", SYSTEMS, edited(diagonals.Parts, "_reciprocal", (
        "Factor(vector.id,", "Factor(self._builder.nodes[vector.id].inputs[0],")),
        program(lambda a: torch.tril(torch.linalg.inv_ex(torch.triu(a)).inverse * 2), _lower)),
    # factorizations
    _lowered("an order that is not undone", "solve", kernel_on_factors(
        "solve_factored", lambda sound, f, y, turned: sound(f._replace(order=f.order[::-1]), y, turned)),
        program(lambda a, y: solve(a, y), _large, _y)),
    _lowered("the transposed system", "solve", kernel_on_factors(
        "solve_factored", lambda sound, f, y, turned: sound(f, y, not turned)),
        program(lambda a, y: solve(a, y), _large, _y)),
    _lowered("the sign of the order", "slogdet", kernel_on_factors(
        "logs_of_factors", lambda sound, f: sound(f._replace(parity=1 - f.parity))),
        program(lambda a: torch.linalg.slogdet(a)[0], _large)),
    _lowered("every matrix is symmetric", "solve", kernel_on_factors(
        "factorize", lambda sound, x, known: sound(x, "symmetric")),
        program(lambda a, y: solve(a, y), _spd + np.triu(np.ones((LARGE, LARGE)) * 0.01), _y)),
)  # fmt: skip
