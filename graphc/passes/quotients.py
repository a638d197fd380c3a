"""Quotients whose factors overflow or vanish while they do not: most gradients of logarithms.

The gradient of log(f(x)) is g / f(x) * f'(x). A tree of products, quotients, squares and signs is read as a product of
powers of its other operands. Powers of what is never 0 for finite operands add up, exp(x) / exp(x) being 1, and a few
pairs are functions of their own: exp(x) / (1 + exp(x)) is sigmoid(x). Powers of other operands add up as well, but
where these are 0 the result stays nan: x / x^2 is no 1 / x there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple, final

from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ops import OPS
from graphc.ops.dtypes import finfo, is_floating
from graphc.passes.cse import eliminate_common_subexpressions
from graphc.passes.replacing import replaced
from graphc.rewrite.cost import node_cost
from graphc.rewrite.rule import held_number

_MUL, _DIV, _NEG, _ADD, _SUB = (OPS[name] for name in ("mul", "div", "neg", "add", "sub"))
_SQUARE, _RECIPROCAL, _EXP, _SIGMOID = (OPS[name] for name in ("square", "reciprocal", "exp", "sigmoid"))
_SPREAD, _SUM, _SOFTMAX = OPS["broadcast_to"], OPS["sum"], OPS["softmax"]
TREE = frozenset((_MUL, _DIV, _NEG, _SQUARE, _RECIPROCAL))
POSITIVE = frozenset((_EXP, _SIGMOID, _SOFTMAX))
FACTORS = 12  # operands of a tree; beyond that it stays as it is
SWEEPS = 4  # products that are equal once others are shortened
_MASK = (1 << 61) - 1
WORTH = 3  # operations for each element that a quotient may cost more


class _Product(NamedTuple):
    """number * the product of powers; `mixed`: the operands that numerator and denominator had in common."""

    number: float
    powers: dict[int, int]
    mixed: frozenset[int]


def cancel_quotients(graph: Graph) -> Graph:
    """`graph` with quotients of products that have factors in common shortened, and equal products computed once.

    Rounds differently.
    """
    for _ in range(SWEEPS):
        shorter = _sweep(graph)
        if shorter is graph:
            break
        graph = eliminate_common_subexpressions(shorter)
    return graph


def _sweep(graph: Graph) -> Graph:
    nodes = graph.nodes
    if TREE.isdisjoint(graph.ops):
        return graph
    uses = graph.uses()
    roots = _worth_a_look(nodes, uses)
    if not roots:
        return graph
    builder = Builder.beside(nodes)
    seen: dict[object, Symbol] = {}  # the first of the products that are equal: (x y) z and (x z) y

    def instead(node: Node) -> Symbol | None:
        product = _factors(builder.nodes, node.id) if node.id in roots and node.op in TREE else None
        if product is None:
            return None
        shorter = _shortened(builder, node.id, product, uses)
        key = product.number, frozenset(product.powers.items()), product.mixed, node.aval
        first = seen.setdefault(key, shorter or builder.symbol(node.id))
        return shorter or (first if first.id != node.id else None)

    return replaced(graph, builder, instead)


_OVER, _WITH_EXP, _WITH_SIGMOID = 1, 2, 4  # what a tree has: a division, and these factors
_PAIR = _WITH_EXP | _WITH_SIGMOID


def _worth_a_look(nodes: Mapping[int, Node], uses: Mapping[int, int]) -> set[int]:
    """The roots of trees that may have factors in common with others, or above and below: in one pass over the nodes.

    Equal products have equal hashes, for that of a product is the sum of those of its factors, times their powers.
    """
    hashes: dict[int, int] = {}
    kinds: dict[int, int] = {}
    first: dict[int, int] = {}  # of each hash
    found: set[int] = set()
    inner = {i for node in nodes.values() if node.op in TREE for i in node.inputs if uses[i] == 1}

    def hash_of(id: int) -> int:
        value = hashes.get(id)
        if value is None:  # not a tree itself
            value = hashes[id] = 0 if held_number(id, nodes) is not None else hash((id,)) & _MASK
        return value

    for id, node in nodes.items():
        op, inputs = node.op, node.inputs
        if op is _EXP or op is _SIGMOID:
            kinds[id] = _WITH_EXP if op is _EXP else _WITH_SIGMOID
            continue
        if op is _SPREAD:
            if nodes[inputs[0]].op is _DIV:
                hashes[id], kinds[id] = hash_of(inputs[0]), _OVER
            continue
        if op is _ADD:
            if inputs[0] == inputs[1]:
                hashes[id], kinds[id] = hash_of(inputs[0]), kinds.get(inputs[0], 0)
            continue
        if op not in TREE:
            continue
        value, kind = hash_of(inputs[0]), kinds.get(inputs[0], 0)
        if op is _MUL or op is _DIV:
            value += hash_of(inputs[1]) if op is _MUL else -hash_of(inputs[1])
            kind |= kinds.get(inputs[1], 0)
        elif op is not _NEG:
            value *= 2 if op is _SQUARE else -1
        if op is _DIV or op is _RECIPROCAL:
            kind |= _OVER
        hashes[id], kinds[id] = value & _MASK, kind
        if id not in inner and is_floating(node.dtype):
            like = first.setdefault(value & _MASK, id)
            if like != id:
                found |= {like, id}
            if kind & _OVER or kind & _PAIR == _PAIR:
                found.add(id)
    return found


def _shortened(builder: Builder, id: int, product: _Product, uses: Counter[int]) -> Symbol | None:
    node, mark = builder.nodes[id], builder.next_id
    builder.where, builder.scope = node.where, node.scope
    writer = _Writer(builder, node, dict(product.powers), product.number)
    if not writer.pairs() and not product.mixed:
        return None
    result = writer.written(product.mixed)
    made = range(mark, builder.next_id)
    cost = sum(node_cost(builder.nodes[i], builder.nodes) for i in made)
    if cost > _freed(builder.nodes, id, result.id, made, uses) + WORTH * node.size or result.aval != node.aval:
        builder.rollback(mark)
        return None
    return result


def _factors(nodes: Mapping[int, Node], root: int) -> _Product | None:
    """The tree with this root as a product, or None if it has too many operands."""
    aval = nodes[root].aval
    number = 1.0
    ups: Counter[int] = Counter()
    downs: Counter[int] = Counter()
    stack = [(root, 1)]
    while stack:
        if len(stack) + len(ups) + len(downs) > FACTORS:
            return None
        id, power = stack.pop()
        node = nodes[id]
        held = held_number(id, nodes)
        if isinstance(held, float) and held and abs(held) < 2.0**64 and abs(held) > 2.0**-64 and abs(power) == 1:
            number = number * held if power > 0 else number / held
        elif node.op is _SPREAD and nodes[node.inputs[0]].op is _DIV and not nodes[node.inputs[0]].shape:
            up, down = nodes[node.inputs[0]].inputs  # of a number that is the same everywhere
            stack += [(up, power), (down, -power)]
        elif node.op is _ADD and node.inputs[0] == node.inputs[1] and node.aval == aval and abs(power) == 1:
            number *= 2.0**power
            stack.append((node.inputs[0], power))
        elif node.op in TREE and node.aval == aval:
            first, *rest = node.inputs
            number *= -1.0 if node.op is _NEG and power & 1 else 1.0
            times = 2 if node.op is _SQUARE else -1 if node.op is _RECIPROCAL else 1
            stack.append((first, power * times))
            stack += [(i, power if node.op is _MUL else -power) for i in rest]
        else:
            (ups if power > 0 else downs)[id] += abs(power)
    limits = finfo(aval.dtype)
    if not float(limits.tiny) <= abs(number) <= float(limits.max):
        return None
    powers = {id: ups[id] - downs[id] for id in [*ups, *downs]}
    return _Product(number, {i: n for i, n in powers.items() if n}, frozenset(ups.keys() & downs.keys()))


def _freed(nodes: Mapping[int, Node], old: int, kept: int, made: range, uses: Counter[int]) -> float:
    """The cost of what nobody reads any more where `kept`, with the nodes that were `made` for it, replaces `old`."""
    left = uses.copy()
    left[kept] += 1
    for id in made:
        left.update(nodes[id].inputs)
    freed, dead = 0.0, [old]
    while dead:
        id = dead.pop()
        freed += node_cost(nodes[id], nodes)
        for i in nodes[id].inputs:
            left[i] -= 1
            if left[i] == 0:
                dead.append(i)
    return freed


@final
class _Writer:
    """A product, with what is known of pairs of its factors, in the place of `node`."""

    def __init__(self, builder: Builder, node: Node, powers: dict[int, int], number: float):
        self.builder, self.node, self.powers, self.number = builder, node, powers, number

    def pairs(self) -> bool:
        """Replace pairs of factors by functions of their own. Returns whether there are any."""
        nodes, F = self.builder.nodes, self.builder.language
        found = False
        for e in [id for id, n in self.powers.items() if n > 0 and nodes[id].op is _EXP]:
            x = self.builder.symbol(nodes[e].inputs[0])
            for d in [id for id, n in self.powers.items() if n < 0]:
                pair = None
                if self._is_one_with(d, _ADD, e):
                    pair = F.sigmoid(x)
                elif self._is_one_with(d, _SUB, e):  # exp(x) / (1 - exp(x)) = -1 / (1 - exp(-x))
                    pair = F.reciprocal(F.expm1(F.neg(x)) + 0.0)  # 1 - exp(0) is no -0
                elif self._is_sum_of(d, e):
                    pair = F.softmax(x, axis=nodes[d].params["axis"][0])
                if pair is not None:
                    self._put(pair, {e: -1, d: 1})
                    found = True
                    break
        for s in [id for id, n in self.powers.items() if n > 0 and nodes[id].op is _SIGMOID]:
            for e in [id for id, n in self.powers.items() if n > 0 and nodes[id].op is _EXP]:
                x, y = nodes[s].inputs[0], nodes[e].inputs[0]
                if any(nodes[i].op is _NEG and nodes[i].inputs == (j,) for i, j in ((x, y), (y, x))):
                    self._put(F.sigmoid(self.builder.symbol(y)), {s: -1, e: -1})  # exp(-x) sigmoid(x)
                    found = True
                    break
        return found

    def _put(self, factor: Symbol, change: Mapping[int, int]) -> None:
        self.powers[factor.id] = self.powers.get(factor.id, 0) + 1
        for id, n in change.items():
            self.powers[id] += n
            if not self.powers[id]:
                del self.powers[id]

    def _is_one_with(self, id: int, op: object, e: int) -> bool:
        """Whether node `id` is 1 + e, or 1 - e."""
        node = self.builder.nodes[id]
        if node.op is not op or e not in node.inputs or (op is _SUB and node.inputs[1] != e):
            return False
        other = node.inputs[0] if node.inputs[1] == e else node.inputs[1]
        return held_number(other, self.builder.nodes) == 1

    def _is_sum_of(self, id: int, e: int) -> bool:
        """Whether node `id` is the sum of `e` along its only axis."""
        node = self.builder.nodes[id]
        return node.op is _SUM and node.inputs == (e,) and self.builder.nodes[e].aval.ndim == 1 and not node.shape

    def written(self, mixed: frozenset[int]) -> Symbol:
        """The product as nodes."""
        nodes, F = self.builder.nodes, self.builder.language
        up, down = (
            [self.builder.symbol(id) for id, n in self.powers.items() for _ in range(sign * n)] for sign in (1, -1)
        )
        # in turn, so that neither numerator nor denominator overflows by itself
        result = up.pop(0) if up else F.full(shape=self.node.shape, value=self.number, dtype=self.node.dtype)
        number = self.number if self.powers and max(self.powers.values()) > 0 else 1.0
        while up or down:
            if down:
                result = F.div(result, down.pop(0))
            if up:
                result = result * up.pop(0)
        if number != 1:
            result = F.neg(result) if number == -1 else result * number
        if result.shape != self.node.shape:
            result = F.broadcast_to(result, shape=self.node.shape)
        for id in mixed:
            if nodes[id].op not in POSITIVE and not self._is_positive(id):
                size = F.abs(self.builder.symbol(id))
                there = size > 0  # nor is it nan
                if id not in self.powers:
                    there = F.logical_and(there, size < float("inf"))
                result = F.where(there, result, float("nan"))
        return result

    def _is_positive(self, id: int) -> bool:
        """Whether node `id` is 1 + exp(x), 1 - sigmoid(x), or a sum of exp(x)."""
        node, nodes = self.builder.nodes[id], self.builder.nodes
        inner = [i for i in node.inputs if nodes[i].op in POSITIVE]
        if node.op is _SUM:
            return bool(inner)
        if len(inner) != 1:
            return False
        return self._is_one_with(id, _ADD, inner[0]) or (
            self._is_one_with(id, _SUB, inner[0]) and nodes[inner[0]].op is _SIGMOID
        )
