"""The nodes of a graph as forms of its atoms: inputs, and results of what is not multilinear."""

from __future__ import annotations

import builtins
import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from graphc.ir import Graph, Node
from graphc.normal.affine import Equations, Index, Unsolved
from graphc.normal.bounds import LIFTED
from graphc.normal.form import Algebra, Factor, Form, Term, atom, collected, tidy
from graphc.normal.plan import MOST_FACTORS
from graphc.ops import Trait
from graphc.ops.dtypes import is_floating

_NUMBERS = frozenset([int])  # what sizes are that are not symbolic


MOST_TERMS = 128  # of a form
WRITABLE = 16  # of one that is written


def is_lifted(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether a node may be a form of its operands: of one dtype, since no form tells where numbers are rounded."""
    if node.op.lifting is None:
        return False
    shape, dtype = node.results[0]
    if dtype.kind == "b" or not _NUMBERS.issuperset(map(type, shape)):
        return False
    for i in node.inputs:
        operand = nodes[i]
        if operand.op.several or (operand.results[0].dtype is not dtype and operand.results[0].dtype != dtype):
            return False
    return True


def _lifted(algebra: Algebra, node: Node, nodes: Mapping[int, Node], given: Sequence[Form]) -> Form:
    assert node.op.lifting is not None
    form = node.op.lifting(algebra, *given, **node.params)
    if any(nodes[f.atom].op.inverts for t in form.terms for f in t.factors):
        form = collected(form.shape, [_cancelled(t, nodes) for t in form.terms])
    avals = [nodes[i].aval for i in node.inputs]
    if node.inputs and node.op.has_lone_terms(avals, node.aval, node.params, lambda k, sign: False):
        return algebra.add(form, algebra.zeros(node.shape))
    return form


def _lifted_somehow(
    algebra: Algebra, node: Node, nodes: Mapping[int, Node], given: Sequence[Form], as_atom: Callable[[int], Form]
) -> Form:
    """The form of a node of its operands' forms; of two sums that a matrix product multiplies, which are not multiplied
    out, one is an atom, and so are zeros, for 0 * inf is nan."""
    try:
        whole = _lifted(algebra, node, nodes, given)
    except Unsolved:
        whole = None
    product = len(given) == 2 and node.op.flops is not None
    if whole is not None and not (product and len(whole.terms) > WRITABLE):
        return whole
    if product:
        for k in _atoms_first(*given):
            if any(t.factors for t in given[k].terms) or not given[k].terms:
                single = [
                    as_atom(i) if j == k else form for j, (i, form) in enumerate(zip(node.inputs, given, strict=True))
                ]
                try:
                    return _lifted(algebra, node, nodes, single)
                except Unsolved:
                    continue
    return as_atom(node.id) if whole is None else whole


def _is_of_pairs(form: Form) -> bool:
    """Whether a form has the differences x_i - y_j of all pairs: sums of x and of y cancel, where x and y lie close
    together and far from the origin, and those of differences do not."""
    if len(form.terms) < 2:
        return False
    along = [[_varies(t, axis) for axis in range(len(form.shape))] for t in form.terms]
    return any(
        s.coefficient * t.coefficient < 0
        and any(a and not b for a, b in zip(v, w, strict=True))
        and any(b and not a for a, b in zip(v, w, strict=True))
        for (s, v), (t, w) in itertools.combinations(zip(form.terms, along, strict=True), 2)
    )


def _is_shifted(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether a computed number that no gradient goes through is taken from an array, or added to it: it is there for
    digits. Arguments that gradients are taken for are behind such nodes, too."""
    if not node.op.pointwise or node.op.bilinear or len(node.inputs) != 2:
        return False
    return any(nodes[i].size < node.size and _is_held_back(i, nodes) for i in node.inputs)


def _is_held_back(id: int, nodes: Mapping[int, Node]) -> bool:
    held = False
    while nodes[id].inputs:
        node = nodes[id]
        stops = bool(node.op.traits & Trait.IDENTITY) and node.op.lifting is None
        if not stops and (not node.op.view or node.op.lifting is None):
            return held
        held = held or stops
        id = node.inputs[0]
    return False


def _varies(term: Term, axis: int) -> bool:
    """Whether what a term adds is not the same all along an axis."""
    labels = term.places[axis].labels
    return any(k in labels for f in term.factors for place in f.places for k in place.labels)


def _atoms_first(a: Form, b: Form) -> tuple[int, int]:
    """Which of two sums is an atom, and which if not that one: the smaller array, a vector sooner than a matrix."""
    sizes = math.prod(a.shape), math.prod(b.shape)
    first = sizes[0] < sizes[1] if sizes[0] != sizes[1] else _is_thin(b) and not _is_thin(a)
    return (0, 1) if first else (1, 0)


def _is_thin(form: Form) -> bool:
    """Whether no factor has an element for each place: diagonals, and columns times rows. Such a sum is multiplied
    out sooner than another, which is an atom then."""
    return all(len(f.places) < 2 for t in form.terms for f in t.factors)


def _cancelled(term: Term, nodes: Mapping[int, Node]) -> Term | None:
    """Without matrices that meet their inverses. Of those that a check may refuse, one stays."""
    times = Counter([f.atom for f in term.factors])
    for k, f in enumerate(term.factors):
        node = nodes[f.atom]
        if not node.op.inverts or len(f.places) != 2 or (node.params["checked"] and times[f.atom] < 2):
            continue
        for j, g in enumerate(term.factors):
            if g.atom != node.inputs[0]:
                continue
            for a, b in ((0, 1), (1, 0)):
                meets = f.places[b]
                ends = f.places[a], g.places[b]
                if meets != g.places[a] or not _is_summed(meets, term, (k, j), ends):
                    continue
                if term.sizes[meets.labels[0]] != node.shape[0]:
                    continue
                equations = Equations(term.sizes)
                equations.equate(*ends)
                rest = [h for i, h in enumerate(term.factors) if i not in (k, j)]
                (gone,) = meets.labels
                sizes = [1 if i == gone else n for i, n in enumerate(equations.left())]
                moved = [Factor(h.atom, tuple([equations.solved(p) for p in h.places])) for h in rest]
                places = [equations.solved(p) for p in term.places]
                short = tidy(term.coefficient, moved, places, sizes)
                return None if short is None else _cancelled(short, nodes)
    return term


def _is_summed(place: Index, term: Term, pair: tuple[int, int], ends: Sequence[Index]) -> bool:
    """Whether a place is a label that runs over all of an axis, and that nothing but this pair of factors has, and
    they not at their other `ends`."""
    if len(place.steps) != 1 or place.steps[0][1] != 1 or place.offset:
        return False
    (k,) = place.labels
    elsewhere = [p for i, f in enumerate(term.factors) if i not in pair for p in f.places]
    return all(k not in p.labels for p in (*term.places, *elsewhere, *ends))


def forms(graph: Graph) -> dict[int, Form]:
    """The form of each node of `graph` that has one result, of sizes that are numbers."""
    return forms_of(graph.nodes, graph.nodes)


def _is_plannable(form: Form) -> bool:
    return len(form.terms) <= MOST_TERMS and all(len(t.factors) <= MOST_FACTORS for t in form.terms)


Known = dict[tuple[int, ...], tuple[tuple[Form, ...], Form]]


def forms_of(
    some: Mapping[int, Node], nodes: Mapping[int, Node], atoms: Collection[int] = (), known: Known | None = None,
    charge: Callable[[int], None] | None = None, to_write: bool = False,
) -> dict[int, Form]:  # fmt: skip
    """The forms of `some` nodes, in order; what they read besides is atoms.

    atoms  those of them that are to be taken as they are by the others
    known  forms of earlier calls, by node and the operands' forms
    charge counts the work
    to_write  differences of all pairs, and of a number near by, are atoms: they have more digits than sums that cancel
    """
    known = {} if known is None else known
    algebra = Algebra()
    own: dict[int, Form] = {}
    read: dict[int, Form] = {}  # as operands

    def operand(id: int) -> Form:
        if id not in read:
            read[id] = own[id] if id in own and id not in atoms else as_atom(id)
        return read[id]

    def as_atom(id: int) -> Form:
        if (id,) not in known:
            known[id,] = (), atom(id, nodes[id].shape)
        return known[id,][1]

    for id, node in some.items():
        if node.op.several or not all(type(n) is int for n in node.shape):
            continue
        own[id] = as_atom(id)
        if node.op.lifting is not None and is_lifted(node, nodes):
            given = tuple([operand(i) for i in node.inputs])
            key = (id, len(given), *map(builtins.id, given))
            if key not in known:  # which keeps the operands' forms alive
                form = _lifted_somehow(algebra, node, nodes, given, as_atom)
                if charge is not None:
                    charge(LIFTED * len(form.terms))
                whole = to_write and is_floating(node.dtype) and (_is_shifted(node, nodes) or _is_of_pairs(form))
                known[key] = given, form if _is_plannable(form) and not whole else as_atom(id)
            own[id] = known[key][1]
    return own
