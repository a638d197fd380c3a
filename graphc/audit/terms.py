"""Every term of a vocabulary up to a number of operations, with its type."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

from graphc.audit.vocabulary import Leaf, Operation, Vocabulary
from graphc.ir import Builder
from graphc.ops import OPS
from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT32

_CAST = OPS["cast"]


class Type(NamedTuple):
    """Of what type an operation's result is, and whether each element depends on one element of each operand only."""

    aval: Aval
    pointwise: bool


@final
class Term:
    """A leaf, or an operation on terms. Equal terms are one object.

    aval       its type, where variables are as small as values are computed on
    size       the number of operations
    variables  the names of the inputs that it reads
    pointwise  whether each element depends on one element of each input only
    own        the same of the operation and its operands
    """

    __slots__ = ("aval", "leaf", "operands", "operation", "own", "pointwise", "size", "variables")

    def __init__(self, leaf: Leaf | None, operation: Operation | None, operands: tuple[Term, ...], type: Type):
        self.leaf = leaf
        self.operation = operation
        self.operands = operands
        self.aval = type.aval
        self.size: int = (operation is not None) + sum(t.size for t in operands)
        self.own = type.pointwise
        name = frozenset({leaf.text}) if leaf is not None and leaf.number is None else frozenset[str]()
        self.variables: frozenset[str] = name.union(*[t.variables for t in operands])
        self.pointwise: bool = type.pointwise and all(t.pointwise for t in operands)

    def subterms(self) -> Iterator[Term]:
        """What the term is made of, operands first, and itself; what occurs twice comes twice."""
        for operand in self.operands:
            yield from operand.subterms()
        yield self

    def replaced(self, new: Mapping[Term, Term]) -> Term:
        """The term with others in place of some of its parts, of the same types."""
        if self in new:
            return new[self]
        operands = tuple(t.replaced(new) for t in self.operands)
        same = all(a is b for a, b in zip(operands, self.operands, strict=True))
        return self if same else Term(self.leaf, self.operation, operands, Type(self.aval, self.own))

    def __str__(self) -> str:
        return self.written({})

    def written(self, names: Mapping[Term, str]) -> str:
        """As text, with names for some of its terms."""
        if self in names:
            return names[self]
        if self.operation is None:
            return self.leaf.text if self.leaf is not None else ""
        inner = [t.written(names) for t in self.operands]
        if self.operation.commutative:
            inner.sort()
        return f"{self.operation.name}({', '.join(inner + ([self.operation.params] if self.operation.params else []))})"

    def __repr__(self) -> str:
        return f"<term {self}: {self.aval}>"


def leaf(of: Leaf) -> Term:
    """The term of a leaf."""
    return Term(of, None, (), Type(Aval(of.shape(large=False), FLOAT32), True))


def variable(name: str, letters: tuple[str, ...]) -> Term:
    """A variable, of a shape that is given by letters."""
    return leaf(Leaf(name, letters))


def terms(vocabulary: Vocabulary, size: int) -> list[Term]:
    """All terms of at most `size` operations that hold a variable, small ones first.

    No operand is converted to another dtype. Of f(x, y) and f(y, x), if an op is commutative, there is one.
    """
    by_size = [[leaf(of) for of in vocabulary.leaves]]
    types: dict[Any, Type | None] = {}
    for count in range(1, size + 1):
        new: list[Term] = []
        for number, operation in enumerate(vocabulary.operations):
            for operands in _operands(operation, by_size, count - 1):
                if not any(t.variables for t in operands):
                    continue
                key = number, *[t.aval for t in operands]
                if key not in types:
                    types[key] = _type(operation, [t.aval for t in operands])
                found = types[key]
                if found is not None:
                    new.append(Term(None, operation, operands, found))
        by_size.append(new)
    return [t for level in by_size for t in level if t.variables]


def _operands(operation: Operation, by_size: Sequence[Sequence[Term]], total: int) -> Iterator[tuple[Term, ...]]:
    """The operands of `total` operations that there are."""
    for split in itertools.product(range(total + 1), repeat=operation.arity):
        if sum(split) != total or (operation.commutative and split[0] > split[1]):
            continue
        if operation.commutative and split[0] == split[1]:
            yield from itertools.combinations_with_replacement(by_size[split[0]], 2)
        else:
            yield from itertools.product(*[by_size[k] for k in split])


def _type(operation: Operation, avals: Sequence[Aval]) -> Type | None:
    """The type of an operation on operands of such types, or None where it takes none such."""
    builder = Builder()
    inputs = [builder.input(f"x{k}", aval) for k, aval in enumerate(avals)]
    try:
        result = operation.apply(builder.language, *inputs)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return None
    made = list(builder.nodes.values())[len(inputs) :]
    if any(node.op is _CAST and node.inputs[0] < len(inputs) for node in made):
        return None
    return Type(result.aval, all(node.op.pointwise or not node.inputs for node in made))
