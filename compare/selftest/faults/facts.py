"""Wrong facts: what is known of matrices and numbers, what follows from it, what is promised and not checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import eager as torch
import graphc
from compare.selftest.fault import Expected, Fault, Trials, of_lowering
from compare.selftest.fault import of_pass as _fault
from compare.selftest.faults.rules import altered
from compare.selftest.faults.systems import kernel_on_factors
from compare.selftest.planting import Plant, declared, with_rule, wrapped
from compare.selftest.trials import numbers, program, samples
from graphc.facts import definite, known, mirrors, ranges
from graphc.facts.known import Facts
from graphc.ops import OPS
from graphc.ops.dtypes import FLOAT64
from graphc.passes import inverses, kronecker

N, LARGE = 6, 70  # rows; those from which factorizations are shared
ASSUMPTIONS, INVERSES = "assumptions", "inverses"
assume, inv, solve, slogdet = graphc.assume, torch.linalg.inv, torch.linalg.solve, torch.linalg.slogdet


def _one(n: int = N) -> Any:
    return torch.eye(n, dtype=torch.float64)


def _square(n: int = N, seed: int = 5) -> np.ndarray:
    return numbers(n, n, low=-0.3, high=0.3, dtype=FLOAT64, seed=seed) + np.roll(np.eye(n), 1, 0)


_a, _b, _thin = _square(), _square(seed=6), numbers(N, 2, dtype=FLOAT64)
_x, _long = numbers(N, dtype=FLOAT64), numbers(N * 5, dtype=FLOAT64)
_v = np.array([-1.5, 0.0, 0.5, 2.0])
_small = _square(5, seed=7)
_spd = _square(LARGE) @ _square(LARGE).T + np.eye(LARGE)
_y = numbers(LARGE, dtype=FLOAT64)


def _taken(what: str, plant: Plant, fact: Any, make: Callable[..., Any], *args: Any) -> Fault:
    """A fact that is false is taken for proven: what eager refuses is let through."""
    return _fault(what, ASSUMPTIONS, plant, program(lambda *xs: assume(make(*xs), fact), *args))


def _ruled(what: str, rule: str, plant: Plant, trials: Trials) -> Fault:
    return Fault(f"facts for rule {rule}: {what}", "rewrite rules", plant, Expected(rule=rule), trials)


def _facts(x: Any) -> Facts:
    return Facts(x.builder.nodes)


def _unchecked(what: str, wrong: Callable[..., Any], trials: Trials) -> Fault:
    plant = kernel_on_factors("definite_factors", wrong)
    return Fault(f"lowering of assume: {what}", "lowerings", plant, Expected("assume", "run-time check"), trials)


def _lowered(what: str, op: str, name: str, wrong: Callable[..., Any], trials: Trials) -> Fault:
    return of_lowering(what, op, kernel_on_factors(name, wrong), trials)


def _always(value: Any) -> Callable[[Any], Any]:
    return lambda sound: lambda *args, **params: value


FAULTS: tuple[Fault, ...] = (
    # of matrices, from how they are made
    _taken("what is semidefinite is definite", wrapped(Facts, "definite", lambda sound: Facts.semidefinite and (
        lambda self, id: sound(self, id) or self._is_semidefinite(id))), "spd", lambda u: u @ u.T, _thin),
    _taken("a negative number times what is semidefinite", wrapped(known, "semidefinite", lambda sound: (
        lambda t, asked: sound(t._replace(coefficient=abs(t.coefficient)), asked))), "psd", lambda a: -a @ a.T, _a),
    _taken("weights that may be negative", wrapped(Facts, "nonnegative", _always(True)), "psd",
           lambda u, d: (u * d) @ u.T, _a, _x - 1),
    _taken("both sides are one", wrapped(definite, "_two_sides", _always(True)), "psd",
           lambda a, b: (a @ b.T) * (b @ a.T), _a, np.roll(_b, 2, 1)),
    _taken("a part of the diagonal is all of it", wrapped(known, "covers", _always(True)), "spd",
           lambda u: u @ u.T + torch.nn.functional.pad(_one(2), (0, N - 2, 0, N - 2)), _thin[:, :1]),
    _taken("what is its negative mirrored is symmetric", wrapped(known, "mirror", lambda sound: (
        lambda form, signs: abs(sound(form, signs)))), "symmetric", lambda a: a - a.T, _a),
    _taken("labels are not looked at", wrapped(mirrors, "_named", lambda sound: lambda names, here, there, a, b: names),
           "symmetric", lambda a: a @ a, _a),
    _taken("functions of one symmetric operand", wrapped(Facts, "mirror", lambda sound: lambda self, id: (
        sound(self, id) or int(any(sound(self, i) for i in self._nodes[id].inputs)))), "symmetric",
        lambda a, b: torch.maximum(a + a.T, b), _a, _b),
    _taken("anything holds", wrapped(Facts, "holds", _always(True)), "positive", lambda x: x - 1, _x),
    _taken("nan is in every range", wrapped(Facts, "finite", _always(True)), (0, 1),
           lambda x: torch.sigmoid(x / x), _v),
    _fault("bands the other way round", "systems", wrapped(Facts, "claims", lambda sound: lambda self, id: [
        (f[0], *f[:0:-1]) for f in sound(self, id)]),
        program(lambda a, x: solve(assume(torch.tril(a) + 0 * a, "lower"), x), _a + 2 * np.eye(N), _x)),
    _fault("all results are orthogonal", INVERSES,
           lambda: declared(OPS["qr"], claims=lambda params, result: (("orthogonal",),)),
           program(lambda a, x: solve(torch.linalg.qr(a)[1], x), _a, _x)),
    _fault("every matrix is orthogonal", INVERSES, wrapped(Facts, "orthogonal", _always(True)),
           program(lambda a, x: solve(a, x), _a, _x)),
    _fault("an orthogonal matrix is a triangle", INVERSES,
           lambda: declared(OPS["qr"], claims=lambda params, result: (("band", 0, np.inf),)),
           program(lambda a: slogdet(torch.linalg.qr(a)[0] * 2)[1], _a)),
    # Kronecker products
    _fault("the number is lost", INVERSES, wrapped(inverses, "kronecker", lambda sound: lambda form, builder: (
        lambda found: found and found._replace(coefficient=1.0))(sound(form, builder))),
        program(lambda a, b, x: solve(torch.kron(a, -3 * b), x), _a, _small, _long)),
    _fault("factors in the other order", INVERSES, wrapped(inverses, "product", lambda sound: (
        lambda F, parts, dtype: sound(F, parts[::-1], dtype))),
        program(lambda a, b, x: solve(torch.kron(a, b), x), _a, _small, _long)),
    _fault("factors that lie across", INVERSES, wrapped(kronecker, "_at", lambda sound: lambda i, j: sound(
        max(i, j), min(i, j))), program(lambda a, b, x: solve(torch.kron(a.T, b.T), x), _a, _small, _long)),
    _fault("each logarithm once", INVERSES, wrapped(inverses._Writer, "_logs_of_product", lambda sound: (
        lambda self, parts, x: inverses._both(*[self._logs(p) for p in parts.parts]))),
        program(lambda a, b: slogdet(torch.kron(a, b))[1], _a, _small)),
    # ranges
    _ruled("zeros beside are forgotten", "relu_of_nonnegative", wrapped(ranges, "_is_everywhere", _always(True)),
           program(lambda x: torch.relu(torch.nn.functional.pad(torch.sigmoid(x) + 1, (0, 2)) - 0.5), _v)),
    _ruled("sums of one element", "relu_of_nonnegative", wrapped(ranges, "_range_of", lambda sound: (
        lambda term, atoms: sound(term._replace(sizes=tuple([1] * len(term.sizes))), atoms))),
        program(lambda x: torch.relu(1.5 - torch.sigmoid(x).sum()), _v)),
    _ruled("even powers are odd", "relu_of_nonnegative", wrapped(ranges, "_power", lambda sound: lambda x, even: (
        ranges.Range(1.0, 9.0))), program(lambda x: torch.relu(torch.tanh(x) * torch.tanh(x) - 0.75), _v)),
    _ruled("an image too small", "relu_of_nonnegative", lambda: declared(OPS["tanh"], image=(0, 1)),
           program(lambda x: torch.relu(torch.tanh(x)), _v)),
    _ruled("the larger is the smaller", "relu_of_nonnegative", lambda: declared(
        OPS["minimum"], image=OPS["maximum"].image), program(lambda x: torch.relu(torch.minimum(x, x * x)), _v)),
    _ruled("a negative is passed on", "relu_of_nonnegative", lambda: declared(OPS["neg"], passes=True),
           program(lambda x: torch.relu(-assume(x, "positive")), _x)),
    # guards: a rule that asks for another fact than it needs
    altered("abs_of_nonnegative", program(lambda x: torch.abs(assume(x, "finite")), _v),
            when=lambda x: _facts(x).finite(x.id)),
    altered("square_of_root", program(lambda x: torch.sqrt(assume(x.detach(), "finite")) ** 2, _v),
            when=lambda x: _facts(x).finite(x.id)),
    altered("finite_less_itself", program(lambda x: (lambda u: u - u)(1 / assume(x, "nonnegative")), abs(_v)),
            when=lambda x: True),
    altered("quotient_of_itself", program(lambda x: (lambda u: u / u)(assume(x, (0, 9))), abs(_v)),
            when=lambda x: _facts(x).nonnegative(x.id)),
    altered("maximum_with_least", program(
        lambda x: torch.maximum(assume(x, (0, 9)), torch.tensor(1.0, dtype=x.dtype)), abs(_v)),
            when=lambda x, c: _facts(x).nonnegative(x.id)),
    # promises, and factors under them
    Fault("kernel of assume: off by 1e-3", "kernels", lambda: declared(
        OPS["assume"], impl=lambda xp, x, fact: x * 1.001, kernel=lambda x, fact: x * 1.001),
        Expected("assume", "kernel"), samples("assume")),
    Fault("gradient of assume: mirrored", "gradient rules", lambda: declared(OPS["assume"], vjp=with_rule(
        OPS["assume"], "x", OPS["assume"].vjp["x"]._replace(fn=lambda F, g: g * 2))),
        Expected("assume", "gradient"), samples("assume")),
    _unchecked("no promise is checked", lambda sound, f, x: True,
             program(lambda k, y: solve(assume(k, "spd"), y), _spd - 3 * np.eye(LARGE), _y)),
    _unchecked("one triangle is looked at", lambda sound, f, x: sound(f, np.eye(LARGE)),
             program(lambda k, y: solve(assume(k, "spd"), y), _spd + np.triu(np.ones_like(_spd), 1) * 0.01, _y)),
    _lowered("halves that are too large", "solve", "solve_factored", lambda sound, f, y, turned: sound(
        f._replace(packed=f.packed * (1 + 0.1 * f.halved)), y, turned),
        program(lambda k, y: solve(assume(k, "spd"), y), _spd, _y)),
    _lowered("half of the logarithm", "slogdet", "logs_of_factors", lambda sound, f: sound(f._replace(halved=False)),
             program(lambda k: slogdet(assume(k, "spd"))[1], _spd)),
    _lowered("symmetric is definite", "solve", "factorize", lambda sound, x, known: sound(x, "definite"),
             program(lambda k, y: solve(assume(k, "symmetric"), y), _spd - 3 * np.eye(LARGE), _y)),
    _lowered("decided without asking", "solve", "solve_factored", lambda sound, f, y, turned: sound(
        f._replace(halved=True), y, turned), program(lambda k, y: solve(k, y), _square(LARGE), _y)),
)  # fmt: skip
