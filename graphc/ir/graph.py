"""Node and Graph: a program as an immutable value. The one importer of networkx, with `draw` and `check` beside it.

`Node.inputs` is the truth; the edges of `Graph.nx` are derived from it (an ordered tuple keeps `mul(x, x)`, which
would be a single edge). Ids are integers without meaning: two graphs are equal when they differ only in ids,
source locations and scopes. Constants compare by bits.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import FrozenInstanceError, dataclass, is_dataclass
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, final

import networkx as nx
import numpy as np

from graphc.ir.calling import Call, arrays_of
from graphc.ir.named import fields_of
from graphc.ops import Check, Literal, Op, Rule
from graphc.ops.aval import Aval, types_text
from graphc.ops.dims import has_dim, is_dim
from graphc.ops.dtypes import is_inexact
from graphc.ops.interpret import run_kernel

if TYPE_CHECKING:
    from graphc.ir.opened import Opened

# The op of a graph's inputs. It is not in the registry: no rule, pass or fuzzer has anything to do with it.
INPUT = Op("input", "", impl=lambda xp, name: None, rule=Rule(lambda op, avals, params: Aval((), np.dtype(bool))),
           params={"name": ""})  # fmt: skip


_NOWHERE: Mapping[Any, Any] = MappingProxyType({})


class Ref(NamedTuple):
    """The place of a node's value in a graph's result."""

    id: int


@dataclass(slots=True, eq=False)
class _Fields:
    id: int
    op: Op
    inputs: tuple[int, ...]
    params: Mapping[str, Any]
    results: tuple[Aval, ...]
    where: str = ""
    scope: str = ""


class _Frozen(type):
    """Instances are filled in while they are of another class: what `dataclass(frozen=True)` does takes 4 x as long."""

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        node = _Fields(*args, **fields)
        node.__class__ = cls  # type: ignore[assignment]  # of the same layout
        return node


@final
class Node(_Fields, metaclass=_Frozen):
    """One operation: `op` applied to the values of `inputs` with `params`, giving an array for each of `results`.

    Of a node with several results, `item` nodes take them out.
    where: the user's file and line, "model.py:12"; scope: the module path, "encoder.0"; either may be empty.
    """

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign to field '{name}'")

    @property
    def aval(self) -> Aval:
        """The type of the one result. ValueError for a node with several."""
        (aval,) = self.results
        return aval

    @property
    def type(self) -> Any:
        """What a rule is told of this node as an operand: the type of its result, or of all, for `item`."""
        return self.results if self.op.several else self.aval

    @property
    def size(self) -> int:
        """The number of elements of all results."""
        results = self.results
        return results[0].size if len(results) == 1 else sum([aval.size for aval in results])

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        return self.aval.dtype

    @property
    def check(self) -> Check | None:
        """The run-time check of the op, unless it always holds for results of this type, or is not asked for."""
        check = self.op.check
        if check is None or (check.whole_only and is_inexact(self.results[0].dtype)):
            return None
        return check if not check.asked or self.params[check.asked] else None

    def on(self, inputs: tuple[int, ...]) -> Node:
        """The same operation on other operands."""
        if inputs == self.inputs:
            return self
        return Node(self.id, self.op, inputs, self.params, self.results, self.where, self.scope)

    def key(self, inputs: tuple[int, ...]) -> tuple[Any, ...]:
        """What identifies the computation on `inputs`: equal keys, equal values. 1 is not True here."""
        params = self.params
        if params:
            return (self.op, inputs, *[(k, type(v), _by_bits(v)) for k, v in params.items()], self.results[0].dtype)
        return (self.op, inputs, self.results[0].dtype)


class Range(NamedTuple):
    """The integers from `low` to `high`, excluded, and the node whose elements are asked to be among them."""

    id: int
    low: int
    high: int


class _Operand(NamedTuple):
    """What the bounds of a check are asked about."""

    id: int
    shape: tuple[int, ...]


@final
class Graph:
    """A program: inputs, nodes in an order in which they can be computed, and a result.

    name     a Python identifier
    nodes    id -> Node, in topological order, inputs included
    inputs   ids of the input nodes, in the order of the arguments
    result   what the program returns: `Ref`s to nodes, in any nest of tuples, lists and dicts, among static values
    history  a record of each pass that the graph went through (see graphc.passes); not part of its value
    call     how the function was called that the graph was traced from (see graphc.ir.calling), None if from none;
             not part of its value
    shardings  by id, how values lie on a mesh (see graphc.sharding.annotated), where that is known; shown in text and
             drawings, not part of its value
    settled  the passes that are known to leave the graph as it is; not part of its value
    """

    def __init__(
        self,
        name: str,
        nodes: Mapping[int, Node],
        inputs: tuple[int, ...],
        result: Any,
        history: tuple[Any, ...] = (),
        call: Call | None = None,
    ):
        self.history = history
        self.call = call
        self.settled: set[Callable[[Graph], Graph]] = set()
        self.shardings: Mapping[Any, Any] = _NOWHERE
        self.name = name
        self.nodes = nodes
        self.inputs = inputs
        self.result = result

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """The ids of the result's nodes, in order of appearance; an id may appear twice."""
        return tuple(ref.id for ref in refs_of(self.result))

    @cached_property
    def ops(self) -> frozenset[Op]:
        """The ops of the nodes: what tells a pass that it has nothing to do."""
        return frozenset([node.op for node in self.nodes.values()])

    @cached_property
    def nx(self) -> nx.DiGraph:
        """The graph as a frozen `networkx.DiGraph`: ids as keys, Nodes under "node", edges from operand to user."""
        graph = nx.DiGraph(name=self.name)
        graph.add_nodes_from((id, {"node": node}) for id, node in self.nodes.items())
        graph.add_edges_from((operand, id) for id, node in self.nodes.items() for operand in node.inputs)
        return nx.freeze(graph)

    @property
    def input_names(self) -> tuple[str, ...]:
        return tuple(self.nodes[id].params["name"] for id in self.inputs)

    def input_avals(self) -> tuple[Aval, ...]:
        return tuple(self.nodes[id].aval for id in self.inputs)

    def output_avals(self) -> tuple[Aval, ...]:
        return tuple(self.nodes[id].aval for id in self.outputs)

    @cached_property
    def paths(self) -> tuple[int, ...]:
        """For each output, the set of inputs that gradients can flow back to, as the bits of a number."""
        from graphc.ir.structure import paths

        return paths(self)

    def users(self) -> dict[int, list[int]]:
        """For each id, the ids of the nodes that read it (once for each time they do)."""
        users: dict[int, list[int]] = {id: [] for id in self.nodes}
        for id, node in self.nodes.items():
            for operand in node.inputs:
                users[operand].append(id)
        return users

    def uses(self) -> Counter[int]:
        """How often each node is read, by nodes and as a part of the result."""
        return Counter(chain(self.outputs, chain.from_iterable([node.inputs for node in self.nodes.values()])))

    def with_inputs(self, names: Mapping[int, str]) -> Graph:
        """The same program with the nodes `names` (which are the first inputs) as inputs of these names."""
        nodes = dict(self.nodes)
        for id, name in names.items():
            nodes[id] = Node(id, INPUT, (), {"name": name}, self.nodes[id].results, self.nodes[id].where)
        return Graph(self.name, nodes, self.inputs, self.result, self.history, self.call)

    def replace(self, nodes: Mapping[int, Node], result: Any) -> Graph:
        """The same program with other nodes and result: what a pass returns."""
        return Graph(self.name, nodes, self.inputs, result, self.history, self.call)

    def rewired(self, nodes: Mapping[int, Node], new: Mapping[int, int]) -> Graph:
        """The same program with other nodes; what it returns are those that `new` has, or the old ones."""
        return self.replace(nodes, rename(self.result, {id: new.get(id, id) for id in self.outputs}))

    def ranges(self, node: Node) -> list[Range] | None:
        """The ranges that the check of `node` asks integers to lie in; None if it asks for no ranges."""
        check = node.check
        if check is None or check.bounds is None:
            return None
        operands = [_Operand(i, self.nodes[i].shape) for i in node.inputs]
        return [Range(operand.id, low, high) for operand, low, high in check.bounds(*operands, **node.params)]

    def operations(self) -> Iterator[Node]:
        """The nodes that are not inputs, in order."""
        return (node for node in self.nodes.values() if node.op is not INPUT)

    def __len__(self) -> int:
        return len(self.nodes)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph on NumPy, node by node. Returns the result with ndarrays in place of nodes.

        It takes what the function took that it was traced from, with arrays for tensors; or an array for each input.
        """
        values = self.evaluate(*args, **kwargs)
        return fill(self.result, values)

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[int, np.ndarray]:
        """The value of every node, computed on NumPy. Raises TypeError or ValueError for arguments that do not fit.

        What a kernel raises gets a note that names the node and the user's line.
        """
        values = dict(zip(self.inputs, self.bind(tuple(arrays_of(self, args, kwargs))), strict=True))
        node = None
        try:
            for node in self.operations():
                operands = [values[i] for i in node.inputs]
                if node.check is not None and not node.check.ok(np, *operands, **node.params):
                    raise node.check.failure(node.params, node.where or "unknown line", operands)
                values[node.id] = run_kernel(node.op, operands, node.params)
        except Exception as error:
            if node is not None:
                what = f"{types_text(node.results)} = {node.op.name} (v{node.id})"
                error.add_note(f"in {self.name}(), {what} at {node.where or 'unknown line'}")
            raise
        return values

    def bind(self, arrays: tuple[Any, ...]) -> list[np.ndarray]:
        """The arguments as ndarrays. Raises if their number, a shape or a dtype is not what the graph was made for."""
        if len(arrays) != len(self.inputs):
            names = ", ".join(self.input_names)
            raise TypeError(f"{self.name}() takes {len(self.inputs)} arrays ({names}) but {len(arrays)} were given")
        bound = []
        for id, given in zip(self.inputs, arrays, strict=True):
            node, array = self.nodes[id], np.asarray(given)
            if array.shape != node.shape or array.dtype != node.dtype:
                raise ValueError(
                    f"{self.name}(): argument '{node.params['name']}' must be {node.aval}, "
                    f"got {Aval(array.shape, array.dtype)}"
                )
            bound.append(array)
        return bound

    @cached_property
    def canonical(self) -> tuple[Any, ...]:
        """A hashable value that is the same for graphs that differ only in ids, locations and scopes."""
        order = [*self.inputs, *(n.id for n in self.operations())]
        number = {id: i for i, id in enumerate(order)}
        body = []
        for id in order:
            node = self.nodes[id]
            body.append(
                (
                    *node.key(tuple(number[i] for i in node.inputs)),
                    *(_sizes_by_form(aval.shape) for aval in node.results),
                )
            )
        return (self.name, tuple(body), _freeze(rename(self.result, number)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and (self is other or self.canonical == other.canonical)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.canonical)

    def __str__(self) -> str:
        """The graph as code, which `parse` reads, but for the values of constants of more than 4 KiB."""
        from graphc.ir.text import LARGE, show

        return show(self, LARGE)

    def text(self) -> str:
        """The graph as code with all of its constants. `Graph.parse(graph.text()) == graph`."""
        from graphc.ir.text import show

        return show(self)

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self.inputs)} inputs, {len(self) - len(self.inputs)} operations>"

    @staticmethod
    def parse(text: str) -> Graph:
        """The graph whose text this is (`graph.text()`; `str(graph)` if no constant is large). Never runs code.

        Raises ParseError for anything else.
        """
        from graphc.ir.parsing import parse

        return parse(text)

    def check(self) -> Graph:
        """Raise GraphError unless the graph is well formed; returns it."""
        from graphc.ir.check import check

        return check(self)

    def save(self, file: Any) -> None:
        """Write the graph to `file`, a path or a binary file object. See graphc.ir.files.save."""
        from graphc.ir.files import save

        save(self, file)

    @staticmethod
    def load(file: Any) -> Graph:
        """The graph that `save` wrote. Raises ParseError for any other content; a file cannot run code."""
        from graphc.ir.files import load

        return load(file)

    def opened(self) -> Opened:
        """The graph with the graphs inside it laid open, for drawings (see graphc.ir.opened)."""
        from graphc.ir.opened import opened

        return opened(self)

    def to_svg(self, title: str = "", *, layout: str = "auto") -> str:
        """A drawing of the graph as a standalone SVG document, modules as boxes; closed ones, if it is large.

        layout  "auto": Graphviz lays it out, where `dot` is installed; "layers": the same drawing on every machine
        """
        from graphc.ir.draw import to_svg

        return to_svg(self, title, layout)

    def to_html(self, title: str = "") -> str:
        """A page without outside resources: a drawing for each module, which opens and closes."""
        from graphc.ir.page import to_html

        return to_html(self, title)

    def to_dot(self) -> str:
        """The graph in Graphviz's language, with a cluster for each module."""
        from graphc.ir.dot import to_dot

        return to_dot(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: the drawing, in a box that scrolls."""
        from graphc.display import Picture
        from graphc.display.as_html import fragment

        return fragment([Picture(self.to_svg(), pans=True)])


def refs_of(result: Any) -> list[Ref]:
    """The Refs in a result, left to right."""
    found: list[Ref] = []
    map_refs(result, found.append)
    return found


def map_refs(result: Any, fn: Callable[[Ref], Any]) -> Any:
    """`result` with `fn(ref)` in place of each Ref."""
    return map_values(result, lambda value: fn(value) if isinstance(value, Ref) else value)


def map_values(result: Any, fn: Callable[[Any], Any]) -> Any:
    """`result` with `fn(value)` in place of each Ref and each static value."""
    if isinstance(result, Ref):
        return fn(result)
    if isinstance(result, dict):
        return {key: map_values(value, fn) for key, value in result.items()}
    if is_dataclass(result) and (fields := fields_of(result)) is not None:
        new = copy.copy(result)
        for name, value in fields.items():
            object.__setattr__(new, name, map_values(value, fn))  # it may be frozen
        return new
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*(map_values(value, fn) for value in result))
    if isinstance(result, (tuple, list)):
        return type(result)(map_values(value, fn) for value in result)
    return fn(result)


def fill(result: Any, values: Mapping[int, Any]) -> Any:
    """`result` with each Ref replaced by its value."""
    return map_refs(result, lambda ref: values[ref.id])


def rename(result: Any, new: Mapping[int, int]) -> Any:
    """`result` with each Ref's id looked up in `new`."""
    return map_refs(result, lambda ref: Ref(new[ref.id]))


_EXACT = frozenset([int, bool, str, type(None), Literal])  # equal if their bits are


def _by_bits(value: Any) -> Any:
    """`value` in a form in which 0.0 is not -0.0, nan is nan, and 1 is not True, inside tuples too."""
    kind = value.__class__
    if kind in _EXACT or (kind is tuple and {int}.issuperset(map(type, value))):
        return value
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, complex):
        return value.real.hex(), value.imag.hex()
    if isinstance(value, tuple):
        return tuple((type(part), _by_bits(part)) for part in value)
    return value.form if is_dim(value) else value


def _sizes_by_form(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(n.form if is_dim(n) else n for n in shape) if has_dim(shape) else shape


def _freeze(result: Any) -> Any:
    if isinstance(result, Ref):
        return ("ref", result.id)
    if isinstance(result, dict):
        return ("dict", tuple((type(key), _by_bits(key), _freeze(value)) for key, value in result.items()))
    if isinstance(result, (tuple, list)):
        return (type(result).__name__, tuple(_freeze(value) for value in result))
    if (fields := fields_of(result)) is not None:
        return (type(result).__name__, tuple(_freeze(value) for value in fields.values()))
    return (type(result).__name__, _by_bits(result))
