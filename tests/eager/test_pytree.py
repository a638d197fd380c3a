"""`torch.utils._pytree`: the same calls here and in PyTorch, and what compiled programs make of it."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple  # noqa: F401 - named in CASES
from dataclasses import dataclass

import pytest

import eager as torch
import graphc
from eager.utils import _pytree as pytree
from tests.oracle import asked_of_torch

Point = namedtuple("Point", "x y")


class Pair:
    """A registered type."""

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __repr__(self):
        return f"Pair({self.a}, {self.b})"


@dataclass
class Fields:
    one: object
    two: object = None


@dataclass(frozen=True)
class Setting:
    norm: str


def registered(p):
    """`p`, PyTorch's module or ours, with the types above."""
    if Pair not in p.SUPPORTED_NODES:
        p.register_pytree_node(Pair, lambda x: ((x.a, x.b), "pair"), lambda children, _: Pair(*children))
        p.register_dataclass(Fields)
        p.register_constant(Setting)
    return p


CASES = {
    "flatten": "p.tree_flatten({'b': [1, (2, 3)], 'a': Point(4, None), 'o': OrderedDict(x=1)})",
    "flatten, defaultdict and deque": "p.tree_flatten([defaultdict(list, a=1), deque([1, 2], maxlen=3), (), {}])",
    "flatten, registered": "p.tree_flatten([Pair(1, [2]), Fields(3), Setting('l2')])",
    "spec": "(lambda s: (s.type, s.context, s.num_leaves, s.num_nodes, s.num_children, s.is_leaf(), s.child(0)))"
    "(p.tree_structure([{'a': 1}, ()]))",
    "specs are equal": "p.tree_structure([1, {'a': 2}]) == p.tree_structure(['x', {'a': None}])",
    "specs differ": "p.tree_structure([1, {'a': 2}]) == p.tree_structure([1, {'b': 2}])",
    "pprint": "p.treespec_pprint(p.tree_structure({'b': [1, (2,)], 'a': Point(4, 5)}))",
    "unflatten": "p.tree_unflatten(range(4), p.tree_structure([defaultdict(list, a=1), deque([1]), Pair(1, 2)]))",
    "unflatten, too few": "p.tree_unflatten([1], p.tree_structure([1, {'a': 2}]))",
    "unflatten, no spec": "p.tree_unflatten([1], 3)",
    "is_leaf": "p.tree_leaves([1, (2, 3)], is_leaf=lambda x: isinstance(x, tuple))",
    "map": "p.tree_map(lambda a, b: (a, b), {'x': 1, 'y': [2]}, OrderedDict(y=[3], x=(4, 5)))",
    "map, arity": "p.tree_map(lambda a, b: a, [1, 2], [1])",
    "map, type": "p.tree_map(lambda a, b: a, [1, 2], (1, 2))",
    "map, a leaf": "p.tree_map(lambda a, b: a, {'a': 1}, Point(1, 2))",
    "map, keys": "p.tree_map(lambda a, b: a, {'a': 1}, {'b': 1})",
    "map, context": "p.tree_map(lambda a, b: a, Point(1, 2), namedtuple('Other', 'x y')(1, 2)).x",
    "map, another type than the registered": "p.tree_map(lambda a, b: a, Pair(1, 2), [1, 2])",
    "map_": "(lambda seen: (p.tree_map_(seen.append, (1, [2])), seen))([])",
    "map_only": "p.tree_map_only(int, lambda x: x + 1, [1, 'a', (2.0, 3)])",
    "map_only, types": "p.tree_map_only((int, str), lambda x: x * 2, [1, 'a', 2.0])",
    "map_only, predicate": "p.tree_map_only(lambda x: x is None, lambda x: 0, [1, None])",
    "map_only, union": "p.tree_map_only(int | str, lambda x: x * 2, [1, 'a', 2.0])",
    "map_only, neither": "p.tree_map_only(3, lambda x: x, [1])",
    "all and any": "(p.tree_all(bool, [1, 0]), p.tree_any(bool, [1, 0]), p.tree_all_only(int, bool, [1, '']),"
    " p.tree_any_only(str, bool, [1, '']))",
    "paths": "p.tree_flatten_with_path({'b': [1, (2,)], 'a': Point(4, 5), 'd': defaultdict(int, k=1)})[0]",
    "paths of fields": "[(p.keystr(k), v) for k, v in p.tree_leaves_with_path([Fields(1), Fields(1, 2)])]",
    "paths, no keys": "p.tree_leaves_with_path(Pair(1, 2))",
    "key_get": "(lambda t: [p.key_get(t, k) for k, _ in p.tree_leaves_with_path(t)])({'b': [1, Point(2, 3)]})",
    "map_with_path": "p.tree_map_with_path(lambda k, a, b: (p.keystr(k), a, b), [1, {'a': 2}], [3, {'a': 4}])",
    "broadcast": "p._broadcast_to_and_flatten([0, None], p.tree_structure([[1, 2], {'a': 3}]))",
    "broadcast, too long": "p._broadcast_to_and_flatten([0, 1, 2], p.tree_structure([[1, 2], {'a': 3}]))",
    "leaves of arguments": "p.arg_tree_leaves([1, 2], 3, a=(4,))",
    "registered twice": "p.register_pytree_node(list, None, None)",
    "dataclass, missing": "p.register_dataclass(type('F', (Fields,), {}), field_names=['one'])",
    "dataclass, unexpected": "p.register_dataclass(type('F', (Fields,), {}), field_names=['one', 'two', 'three'])",
    "dataclass, dropped": "(lambda c: (p.register_dataclass(c, field_names=['one'], drop_field_names=['two']), "
    "p.tree_leaves(c(1, 2))))(type('F', (Fields,), {}))",
    "dataclass, none": "p.register_dataclass(int)",
    "constant, no eq": "p.register_constant(Pair)",
}  # fmt: skip


def outcome(expression, p):
    """The text of a value, or of an error."""
    try:
        return str(eval(expression, {**globals(), "p": registered(p)}))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@asked_of_torch("case", CASES)
def test_as_pytorch(case):
    from torch.utils import _pytree as theirs

    assert outcome(CASES[case], pytree) == outcome(CASES[case], theirs)


def test_nests_are_the_same_after_a_round():
    nest = {"a": [1, (2, deque([3], maxlen=2))], "b": Point(4, defaultdict(int, k=5))}
    leaves, spec = pytree.tree_flatten(nest)
    assert leaves == [1, 2, 3, 4, 5]
    assert pytree.tree_unflatten(leaves, spec) == nest
    assert [pytree.key_get(nest, path) for path, _ in pytree.tree_leaves_with_path(nest)] == leaves


def test_maps_run_in_compiled_programs():
    def f(nest):
        return pytree.tree_map(lambda t: (t * t).sum(), nest)

    nest = {"w": torch.arange(3.0).requires_grad_(), "b": [torch.ones(2, 2)]}
    eager, compiled = f(nest), graphc.compile(f, backend="numpy")(nest)
    assert pytree.tree_structure(eager) == pytree.tree_structure(compiled)
    assert pytree.tree_all(bool, pytree.tree_map(torch.equal, eager, compiled))
    compiled["w"].backward()
    assert nest["w"].grad.tolist() == [0, 2, 4]


def test_transforms_take_registered_types():
    registered(pytree)
    grad = torch.func.grad(lambda pair: (pair.a * pair.b).sum())(Pair(torch.tensor(2.0), torch.tensor(3.0)))
    assert isinstance(grad, Pair)
    assert (grad.a.item(), grad.b.item()) == (3, 2)


def test_a_wrong_number_of_leaves_is_named():
    with pytest.raises(ValueError, match="has length 1 but the spec refers to a pytree that holds 2 items"):
        pytree.tree_structure([0, 0]).unflatten([1])
