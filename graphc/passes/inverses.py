"""Inverses and determinants by the structure of their matrices.

Systems of equations are products with inverses here, so that the normal form finds the order of all products; what is
left of them is solved at the end (graphc.passes.solves). Before that, inverses become those of smaller things:

    diag(d)^-1 = diag(1 / d)          (P Q)^-1 = Q^-1 P^-1          (P^T)^-1 = (P^-1)^T          (s P)^-1 = P^-1 / s
    log |s P| = n log |s| + log |P|
    Q^-1 = Q^T, Q orthogonal          (P x Q)^-1 = P^-1 x Q^-1, Kronecker's product
    of blocks on the diagonal: the inverses of the blocks
    [[A, 0], [C, D]]^-1 = [[A^-1, 0], [-D^-1 C A^-1, D^-1]]          log |[[A, 0], [C, D]]| = log |A| + log |D|

Of a diagonal plus a product through few columns, see `low_rank` and `updates`; of sums of Kronecker products,
`kronecker_sums`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Container
from typing import Any, final

from graphc.facts.bands import extent
from graphc.facts.known import DEFINITE, Facts
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ir.matrices import transposes
from graphc.normal.gate import adds_up
from graphc.ops import OPS
from graphc.ops.dtypes import is_floating
from graphc.ops.linalg import swap_last
from graphc.ops.solving import singular_message
from graphc.passes.dce import eliminate_dead_code
from graphc.passes.diagonals import Parts, diagonal_matrix
from graphc.passes.kronecker import Kronecker, kronecker, product
from graphc.passes.kronecker_sums import Spectrum, spectrum
from graphc.passes.low_rank import LowRank, is_matrix
from graphc.passes.matrices import is_one_matrix, node_of, operands, scaled, transposed
from graphc.passes.updates import Updates
from graphc.rewrite.rule import held_number

NARROW = 2 / 3  # columns for each row, at most, for which two systems are solved sooner than matrices multiplied
_SOLVE, _INV, _SLOGDET, _DET, _COFACTOR = ASKED = tuple(
    [OPS[name] for name in ("solve", "inv", "slogdet", "det", "cofactor")]
)
_ITEM, _MATMUL = OPS["item"], OPS["matmul"]


def expand_inverses(graph: Graph, trusted: Container[int] = ()) -> Graph:
    """`graph` with systems of equations as products with inverses, and inverses and determinants as small as can be.

    trusted: see `LowRank`
    """
    if not any(op in graph.ops for op in ASKED):
        return graph
    return eliminate_dead_code(_Writer(graph, trusted).written())


@final
class _Writer:
    def __init__(self, graph: Graph, trusted: Container[int]):
        self._graph = graph
        self._builder = Builder()
        self._builder.next_id = max(graph.nodes) + 1
        # by others than those that ask for an inverse or a determinant
        self._needed = {i for node in graph.nodes.values() if node.op not in ASKED for i in node.inputs}
        self._needed.update(graph.outputs)
        self._users = graph.users()
        self._measured = {node.inputs[0] for node in graph.nodes.values() if node.op in (_SLOGDET, _DET)}
        # for errors, who asks for an inverse that may not be there: a determinant shares what that is made of
        solved = [node for node in graph.nodes.values() if node.op in (_SOLVE, _INV) and node.params["checked"]]
        self._checked_by = {node.inputs[0]: node.params["asked"] for node in reversed(solved)}
        self._is_wide = False  # what is asked for now
        self._facts = Facts(self._builder.nodes)
        self._parts = Parts(self._builder, self._facts)
        self._inverses: dict[tuple[int, bool, str], Symbol] = {}
        self._spectra: dict[int, Spectrum | None] = {}
        self._low_rank = LowRank(self._builder, self._facts, trusted)
        self._updates = Updates(self._builder, self._facts, self._low_rank)
        self._trusted = trusted

    def written(self) -> Graph:
        graph, builder = self._graph, self._builder
        new: dict[int, int] = {}
        logs: dict[int, tuple[Symbol, Symbol]] = {}
        for id, node in graph.nodes.items():
            builder.where, builder.scope = node.where, node.scope
            inputs = tuple([new.get(i, i) for i in node.inputs])
            if node.op is _ITEM and node.inputs[0] in logs:
                new[id] = logs[node.inputs[0]][node.params["index"]].id
            elif node.op not in ASKED:
                found = self._low_rank.pushed(inputs) if node.op is _MATMUL else None
                if found is None:
                    builder.copy(node, inputs)
                else:
                    new[id] = found.id
            else:
                x = builder.symbol(inputs[0])
                if node.op is _SLOGDET:
                    logs[id] = self._logs(x)
                elif node.op is _DET:
                    new[id] = self._determinant(x).id
                elif node.op is _COFACTOR:
                    new[id] = self._cofactors(x).id
                else:
                    self._is_wide = not self._is_narrow(node, node.shape[-2:-1])
                    inverse = self._inverse(x, node.params["checked"], node.params["asked"])
                    if node.op is _INV:
                        found = inverse
                    else:
                        found = self._low_rank.pushed((inverse.id, inputs[1])) or inverse @ builder.symbol(inputs[1])
                    new[id] = found.id
                    if id in self._needed:
                        self._needed.add(found.id)
        return graph.rewired(builder.nodes, new)

    def _is_narrow(self, node: Node, rows: tuple[Any, ...]) -> bool:
        """Whether all that is computed of a solution, or an inverse, leads to products of few columns."""
        known = all(type(n) is int for n in (*rows, node.size))
        if known and node.op is not _INV and node.size <= NARROW * rows[0] * rows[0]:
            return True
        users = [self._graph.nodes[k] for k in self._users.get(node.id, ())]
        follows = [u for u in users if adds_up(u) or transposes(u) or (u.op.pointwise and u.op.lifting is not None)]
        return bool(users) and len(follows) == len(users) and all(self._is_narrow(u, rows) for u in follows)

    def _factors(self, x: Symbol) -> tuple[Symbol, Symbol] | None:
        """The square matrices whose product a node is, if nothing else reads it or both are triangles."""
        node = node_of(x)
        if node.op is not _MATMUL:
            return None
        p, q = operands(x)
        if p.shape != q.shape or p.shape != x.shape:
            return None
        return (p, q) if x.id not in self._needed or (self._is_easy(p) and self._is_easy(q)) else None

    def _kronecker(self, x: Symbol) -> Kronecker | None:
        if not is_one_matrix(x) or not is_floating(x.dtype):
            return None
        return kronecker(self._facts.product(x.id), self._builder)

    def _spectrum(self, x: Symbol) -> Spectrum | None:
        if x.id not in self._spectra:
            form = self._facts.outer_form(x.id) if is_floating(x.dtype) else None
            self._spectra[x.id] = spectrum(form, self._builder, self._facts)
        return self._spectra[x.id]

    def _blocks(self, x: Symbol) -> list[tuple[int, int]]:
        """The rows from, to of the blocks on the diagonal, outside of which all is zero."""
        n = x.shape[-1]
        parts = [(min(rows[0], columns[0]), max(rows[1], columns[1])) for rows, columns in self._extents(x)]
        if not parts:
            return [(0, n)]
        blocks: list[tuple[int, int]] = []
        for start, stop in sorted(parts):
            if blocks and start < blocks[-1][1]:
                blocks[-1] = blocks[-1][0], max(stop, blocks[-1][1])
            else:
                blocks.append((start, stop))
        edges = [0, *[k for block in blocks for k in block], n]
        whole = all(a == b for a, b in zip(edges[::2], edges[1::2], strict=True))
        return blocks if whole else [(0, n)]  # of rows of zeros, elimination finds out

    def _extents(self, x: Symbol) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """The rows from, to and columns from, to of each term of a matrix; none if nothing is known."""
        form = self._facts.form(x.id) if is_one_matrix(x) else None
        terms = () if form is None else form.terms
        places = [[extent(p, t.sizes) for p in t.places] for t in terms]
        return [((a, b + 1), (c, d + 1)) for (a, b), (c, d) in places]

    def _corner(self, x: Symbol) -> tuple[int, bool] | None:
        """Where to cut a matrix so that the block on the upper right is zero, or, True, that on the lower left."""
        parts, n = self._extents(x), x.shape[-1]
        cuts = sorted({k for rows, columns in parts for k in (*rows, *columns)} - {0, n}, key=lambda k: abs(2 * k - n))
        for cut in cuts:
            for turned in (False, True):
                if not any(p[turned][0] < cut < p[not turned][1] for p in parts):
                    return cut, turned
        return None

    def _triangle_of_blocks(self, x: Symbol) -> list[tuple[int, int]]:
        """The rows from, to of blocks on the diagonal, beside which all is zero on one side."""
        blocks, corner = self._blocks(x), self._corner(x)
        return blocks if len(blocks) > 1 or corner is None else [(0, corner[0]), (corner[0], x.shape[0])]

    def _inverse(self, x: Symbol, checked: bool, asked: str) -> Symbol:
        key = x.id, checked, asked
        if key not in self._inverses:
            self._inverses[key] = self._inverted(x, checked, asked)
        return self._inverses[key]

    def _usable(self, x: Symbol, d: Symbol, checked: bool, asked: str) -> Symbol:
        """What `LowRank.of` finds as D of a matrix that is inverted, once it is known to have no zeros."""
        return d if is_matrix(d) or x.id in self._trusted else self._nonzero(d, checked, asked)

    def _is_easy(self, x: Symbol) -> bool:
        """Whether a system with a matrix is solved by substitution, or by a product."""
        return node_of(x).op is _INV or (is_one_matrix(x) and min(self._facts.band(x.id)) <= 0)

    def _regular(self, x: Symbol, condition: Symbol, checked: bool, asked: str) -> Symbol:
        F = self._builder.language
        return F.regular(x, condition, message=singular_message(asked)) if checked else x

    def _nonzero(self, x: Symbol, checked: bool, asked: str) -> Symbol:
        known = held_number(x.id, self._builder.nodes) or self._facts.positive(x.id)
        return x if known else self._regular(x, self._builder.language.ne(x, 0), checked, asked)

    def _inverted(self, x: Symbol, checked: bool, asked: str) -> Symbol:
        F = self._builder.language
        checked = checked and DEFINITE not in self._facts.claims(x.id)  # which has been checked
        inverse = functools.partial(self._inverse, checked=checked, asked=asked)
        below = transposed(x)
        if below is not None:
            found = inverse(below)
            return found if found in self._low_rank else swap_last(F, found)
        node = node_of(x)
        if node.op is _INV:
            inner = operands(x)[0]
            # an inverse that others read asks for itself whether there is one
            if not (checked or (node.params["checked"] and x.id not in self._needed)):
                return inner
            sign, _ = self._logs(inner)
            return self._regular(inner, F.ne(sign, 0), True, node.params["asked"])
        pair = scaled(x)
        if pair is not None:
            matrix, number = pair
            return F.div(inverse(matrix), self._nonzero(number, checked, asked))
        factors = self._factors(x)
        # a determinant takes those of both as well
        if factors is not None and (not self._is_wide or x.id in self._measured or any(map(self._is_easy, factors))):
            return inverse(factors[1]) @ inverse(factors[0])
        if self._facts.orthogonal(x.id):
            return swap_last(F, x)
        parts = self._kronecker(x)
        if parts is not None:
            small = [inverse(p) if isinstance(p, Symbol) else p for p in parts.parts]
            found = product(F, small, x.dtype)
            return found if parts.coefficient == 1 else found * (1 / parts.coefficient)
        if is_one_matrix(x):
            if max(self._facts.band(x.id)) <= 0:
                d = self._parts.diagonal(x)
                return diagonal_matrix(F, F.reciprocal(self._nonzero(d, checked, asked)))
            blocks = self._blocks(x)
            if len(blocks) > 1:
                return self._joined([inverse(self._parts.block(x, block)) for block in blocks])
            corner = self._corner(x)
            if corner is not None:
                return self._of_corner(x, *corner, inverse)
            whole = self._spectrum(x)
            if whole is not None:
                values = self._nonzero(whole.values, checked, asked)
                return (whole.vectors * F.reciprocal(values)) @ swap_last(F, whole.vectors)
            thin = self._low_rank.of(x)
            if thin is not None:
                return self._low_rank.inverse(x, self._usable(x, thin[0], checked, asked), thin[1], asked)
            update = self._updates.of(x)
            if update is not None:
                return self._updates.inverse(update, inverse(update.core))
        return F.inv(x, checked=checked, asked=asked)

    def _joined(self, blocks: list[Symbol]) -> Symbol:
        """The matrix with these blocks on its diagonal."""
        F = self._builder.language
        n, at, rows = sum([b.shape[0] for b in blocks]), 0, []
        for b in blocks:
            k = b.shape[0]
            rows.append(F.pad_zeros(b, low=(0, at), high=(0, n - at - k), interior=(0, 0)))
            at += k
        return F.cat(*rows, axis=0)

    def _of_corner(self, x: Symbol, cut: int, turned: bool, inverse: Callable[[Symbol], Symbol]) -> Symbol:
        """The inverse of a matrix with a block of zeros, see `_corner`."""
        F, n = self._builder.language, x.shape[0]
        halves = (0, cut), (cut, n)
        first, second = [inverse(self._parts.block(x, half)) for half in halves]
        at = int(not turned), int(turned)
        outer, inner = (first, second) if turned else (second, first)
        beside = outer @ self._parts.block(x, halves[at[0]], halves[at[1]]) @ inner
        low, high = tuple([halves[k][0] for k in at]), tuple([n - halves[k][1] for k in at])
        rest = F.pad_zeros(F.neg(beside), low=low, high=high, interior=(0, 0))
        return self._joined([first, second]) + rest

    def _logs(self, x: Symbol) -> tuple[Symbol, Symbol]:
        """The sign of the determinant, and the logarithm of its size."""
        F = self._builder.language
        below = transposed(x)
        if below is not None:
            return self._logs(below)
        node = node_of(x)
        if node.op is _INV and is_floating(x.dtype):
            inner = operands(x)[0]
            sign, logs = self._logs(inner)
            return self._regular(sign, F.ne(sign, 0), node.params["checked"], node.params["asked"]), F.neg(logs)
        factors = self._factors(x)
        if factors is not None and is_floating(x.dtype):
            return _both(*map(self._logs, factors))
        if is_one_matrix(x) and is_floating(x.dtype):
            pair = scaled(x)
            if pair is not None:  # of a determinant itself, the power of the number may overflow
                matrix, number = pair
                n, sign = x.shape[0], F.sgn(number)
                return _both(self._logs(matrix), (sign if n % 2 else F.square(sign), F.log(F.abs(number)) * float(n)))
            if min(self._facts.band(x.id)) <= 0:
                return self._logs_of(self._parts.diagonal(x))
            parts = self._kronecker(x)
            if parts is not None:
                return self._logs_of_product(parts, x)
            blocks = self._triangle_of_blocks(x)
            if len(blocks) > 1:
                return functools.reduce(_both, [self._logs(self._parts.block(x, b)) for b in blocks])
            whole = self._spectrum(x)
            if whole is not None:
                return self._logs_of(whole.values)
            thin = self._low_rank.of(x)
            if thin is not None:
                asked = self._checked_by.get(x.id)
                d = self._usable(x, thin[0], asked is not None, asked or "")
                return self._low_rank.determinant(x, d, thin[1], self._logs)
            update = self._updates.of(x)
            if update is not None:
                return _both(self._logs(update.core), self._logs_of(update.d))
        found: Any = F.slogdet(x)  # of an op with two results
        return found

    def _logs_of(self, d: Symbol) -> tuple[Symbol, Symbol]:
        """Of the determinant that is the product of these numbers."""
        F = self._builder.language
        return F.prod(F.sgn(d), axis=(0,), keepdims=False), F.sum(F.log(F.abs(d)), axis=(0,), keepdims=False)

    def _logs_of_product(self, parts: Kronecker, x: Symbol) -> tuple[Symbol, Symbol]:
        F, n = self._builder.language, x.shape[0]
        size, negative = n * math.log(abs(parts.coefficient)), parts.coefficient < 0 and n % 2
        sign = F.full(shape=(), value=-1 if negative else 1, dtype=x.dtype)
        logs = F.full(shape=(), value=size, dtype=x.dtype)
        for part in parts.parts:
            if isinstance(part, Symbol):
                times = n // part.shape[0]
                own, log = self._logs(part)
                sign, logs = sign * (own if times % 2 else F.square(own)), logs + log * times
        return sign, logs

    def _determinant(self, x: Symbol) -> Symbol:
        F = self._builder.language
        below = transposed(x)
        if below is not None:
            return self._determinant(below)
        factors = self._factors(x)
        if factors is not None:
            p, q = map(self._determinant, factors)
            return p * q
        if is_one_matrix(x):
            if min(self._facts.band(x.id)) <= 0:
                return F.prod(self._parts.diagonal(x), axis=(0,), keepdims=False)
            blocks = self._triangle_of_blocks(x)
            if len(blocks) > 1:
                return functools.reduce(
                    lambda a, b: a * b, [self._determinant(self._parts.block(x, b)) for b in blocks]
                )
            thin = self._low_rank.of(x)
            if thin is not None:
                return self._low_rank.product(*thin, self._determinant)
            update = self._updates.of(x)
            if update is not None:
                return self._determinant(update.core) * F.prod(update.d, axis=(0,), keepdims=False)
        return F.det(x)

    def _cofactors(self, x: Symbol) -> Symbol:
        """det(A) A^-T."""
        F = self._builder.language
        if self._facts.definite(x.id) and self._low_rank.of(x) is not None:
            return self._determinant(x) * swap_last(F, self._inverse(x, False, "inv"))
        if x.shape[-2:] == (1, 1):
            return F.full(shape=x.shape, value=1, dtype=x.dtype)
        update = self._updates.of(x)
        if update is None:
            return F.cofactor(x)
        return self._updates.cofactors(update, self._determinant(update.core), self._cofactors(update.core))


def _both(a: tuple[Symbol, Symbol], b: tuple[Symbol, Symbol]) -> tuple[Symbol, Symbol]:
    """Sign and logarithm of a product."""
    return a[0] * b[0], a[1] + b[1]
