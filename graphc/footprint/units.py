"""What of a graph is written to memory, as XLA does: chains of operations are fused into what reads them.

XLA's rules for CPUs (instruction_fusion.cc, cpu_instruction_fusion.cc), told by the traits of ops: pointwise
operations and movement are loops. A loop is fused into its readers if all of them are loops; into several only if it
costs little. What is left is written: results, and operands of products, sums, sorts, factorizations, control flow;
but a sum, and a softmax, computes by itself arithmetic, and a product, that nobody else reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from graphc.footprint.softmax import LESS_MAXIMUM
from graphc.footprint.temporaries import copies_of, multiplies_pixels, ordered_by, scratch_of, size_of
from graphc.ir import INPUT, Graph, Node
from graphc.ir.structure import ITEM
from graphc.lowering.factors import BY_COLUMNS
from graphc.lowering.primitives import WRITERS
from graphc.ops import OPS, Trait
from graphc.ops.dtypes import is_inexact
from graphc.ops.parts import ROWS
from graphc.ops.spec import MANY

_MATMUL = OPS["matmul"]


class Unit(NamedTuple):
    """What XLA runs as one: computes the value of node `id`.

    reads     nodes whose values it reads from memory, inputs of the graph among them
    writes    nodes whose values it writes, and their bytes: itself, or those that take its results apart
    scratch   bytes that it needs meanwhile
    over      what it may write over where nobody needs that any more, if it is of its size
    into      of these what it changes in place, if any: the two have one memory
    """

    id: int
    reads: tuple[int, ...]
    writes: tuple[tuple[int, int], ...]
    scratch: int
    over: frozenset[int]
    into: int | None = None


class Units:
    """The units of a graph, in its order. inside: the bytes that a graph takes which a node runs

    units  by id of the node that they compute
    place  the node whose memory holds a node's value: itself, or that which it is a view of
    """

    def __init__(self, graph: Graph, inside: Callable[[Graph], int]):
        self._inside = inside
        self._nodes = graph.nodes
        self._users = graph.users()
        self.place: dict[int, int] = {}
        for id, node in graph.nodes.items():
            readers = [graph.nodes[i] for i in self._users[id]]
            shown = shows_all(node, graph.nodes) or self._turned(node, readers) or self._made_turned(node)
            self.place[id] = self.place[node.inputs[0]] if shown else id
        self._needed = {self.place[id] for id in graph.outputs}
        self._absorbed: set[int] = set()  # products that a sum computes by itself
        self._seen_flat: set[int] = set()  # matrices that products read, which show arrays of more dims; and these
        self._flat: dict[int, int] = {}  # node that is written as a matrix only -> the number of that unit
        self._within: dict[int, set[int]] = {}  # of what is written or fused: the units that compute or read it
        for id in reversed([*graph.nodes]):
            self._decide(id)
        self.units: dict[int, Unit] = {}
        for id in graph.nodes:
            if self._written(id):
                self._add(id)
            elif id in self._flat:
                self._flat[id] = self._append(self._reads(graph.nodes[id])[0], size_of(graph.nodes[id].results))

    def _turned(self, node: Node, readers: Sequence[Node]) -> bool:
        """Whether `node` is a matrix transposed, which products and loops read as it lies, and LAPACK, of columns.

        Many matrices that are products with a number for each row, as a softmax is, XLA computes anew as they are read.
        """
        loops = [r for r in readers if not is_product(r) and r.op not in BY_COLUMNS]
        if len(loops) == len(readers) or not _swaps(node) or not all(is_loop(r, self._nodes) for r in loops):
            return False
        whole = self._nodes[node.inputs[0]]
        if node.aval.ndim <= 2 or not whole.op.pointwise:
            return True
        return not any(self._nodes[i].shape[-1:] == (1,) != whole.shape[-1:] for i in whole.inputs)

    def _made_turned(self, node: Node) -> bool:
        """Whether `node` is a product of two matrices transposed, which is made so."""
        whole = node.inputs[0] if node.inputs else None
        if whole is None or not _swaps(node) or node.aval.ndim != 2:
            return False
        return is_product(self._nodes[whole]) and self._users[whole] == [node.id]

    def _written(self, id: int) -> bool:
        """Whether a node is the root of a unit: inputs are there, and constants are part of the program."""
        node = self._nodes[id]
        made = node.op is not INPUT and node.op is not ITEM and not node.op.traits & Trait.LITERAL
        return made and (id in self._needed or node.op.several)

    def _decide(self, id: int) -> None:
        """Whether a node is written, once that is known of its readers."""
        node = self._nodes[id]
        readers = [self._nodes[i] for i in self._users[id]]
        if self.place[id] != id:  # a view: what it shows is written where this is asked for
            if not self._fuse(node, readers):
                whole = self.place[id]
                if node.aval.ndim <= 2 < self._nodes[whole].aval.ndim:
                    self._seen_flat |= {id, whole}
                else:
                    self._needed.add(whole)
            self._within[id] = self._units_of(readers)
            return
        within = self._units_of(readers)
        loops = is_loop(node, self._nodes) and self._fuse(node, readers)
        if self._absorbs(node, readers):
            self._absorbed.add(id)
            self._within[id] = within
            return
        if self._is_flat(node, readers):
            self._flat[id] = 0
        elif node.op is INPUT or not loops or id in self._seen_flat or (is_dear(node) and len(within) > 1):
            self._needed.add(id)
        self._within[id] = within

    def _as_matrix(self, node: Node, reader: Node) -> bool:
        """Whether `reader` is a product that takes the many rows of `node` as those of one matrix."""
        if node.aval.ndim <= 2:
            return False
        return multiplies_pixels(reader, self._nodes) or (
            is_product(reader) and any(self._nodes[i].aval.ndim <= 2 for i in reader.inputs)
        )

    def _is_flat(self, node: Node, readers: Sequence[Node]) -> bool:
        """Whether products read `node` as a matrix, and loops compute it anew: of an array in two shapes XLA writes the
        one that is asked for, and fuses what is cheap into the readers of the other."""
        if node.id in self._needed or is_dear(node) or not is_loop(node, self._nodes) or node.op is INPUT:
            return False
        loops = [r for r in readers if not self._as_matrix(node, r)]
        asked = len(loops) < len(readers) or node.id in self._seen_flat
        loops = [r for r in loops if self.place[r.id] != node.id]
        return asked and bool(loops) and self._fuse(node, loops)

    def _fuse(self, node: Node, readers: Sequence[Node]) -> bool:
        """Whether XLA can compute `node` wherever it is read: loops do."""
        return all(r.id not in self._absorbed and is_loop(r, self._nodes) for r in readers)

    def _absorbs(self, node: Node, readers: Sequence[Node]) -> bool:
        """Whether the sum that alone reads `node`, perhaps through arithmetic, computes it by itself."""
        if len(readers) != 1 or node.id in self._needed or not node.inputs:
            return False
        (reader,) = readers
        if node.op is LESS_MAXIMUM:
            return reader.op.pointwise
        if reader.id not in self._absorbed and not _sums(reader):
            return False
        operands = [self._nodes[i] for i in node.inputs]
        arithmetic = node.op.pointwise and not node.op.moves and all(x.results[0].dtype == node.dtype for x in operands)
        if any(self._is_mask(x) for x in operands):  # XLA makes a choice of it
            return False
        loop = node.dtype.kind == "c" and is_loop(node, self._nodes)  # sums of complex numbers are XLA's own loops
        return is_inexact(node.dtype) and (arithmetic or loop or is_product(node))

    def _is_mask(self, node: Node) -> bool:
        """Whether `node` is zeros and ones, made of truth values."""
        return node.op.pointwise and len(node.inputs) == 1 and self._nodes[node.inputs[0]].dtype == bool

    def _units_of(self, readers: Sequence[Node]) -> set[int]:
        found: set[int] = set()
        for reader in readers:
            own = reader.id in self._needed and self.place[reader.id] == reader.id
            found |= {reader.id} if own else self._within[reader.id]
        return found

    def _reads(self, node: Node) -> tuple[dict[int, None], set[int]]:
        """What the unit of `node` reads, and of this what it does not read just where it writes."""
        reads: dict[int, None] = {}
        apart = set[int]()
        stack = [(i, node.op.pointwise, node.id) for i in reversed(node.inputs)]
        seen = set[tuple[int, bool, bool]]()
        for i in node.inputs:
            whole = self.place[i]
            flat = self._as_matrix(self._nodes[i], node) if i == whole else i in self._seen_flat
            if flat and whole in self._flat:
                reads[self._flat[whole]] = None
                stack = [pair for pair in stack if pair[0] != i]
        while stack:
            i, elementwise, reader = stack.pop()
            elementwise = elementwise and self._nodes[i].shape == node.shape and self.place[i] == i
            i = self.place[i]
            operand = self._nodes[i]
            again = i in self._needed and self._again(operand, self._nodes[reader])
            if (i, elementwise, again) in seen:
                continue
            seen.add((i, elementwise, again))
            if again or i not in self._needed:
                elementwise = elementwise and operand.op.pointwise
                stack.extend([(k, elementwise, i) for k in reversed(operand.inputs)])
                continue
            reads[i] = None
            if not elementwise or self._flattened(operand) != self._flattened(node):
                apart.add(i)
        return reads, apart

    def _again(self, node: Node, reader: Node) -> bool:
        """Whether a loop that reads `node`, which others need written, computes it anew: of one large operand it does,
        for then it reads no more. Of a softmax it does not, for XLA computes that with the products beside it."""
        if is_dear(node) or node.op.name not in WRITERS or not node.op.pointwise or not self._fuse(node, [reader]):
            return False
        large = [self._nodes[i] for i in node.inputs if self._nodes[i].size >= node.size]
        return len(large) == 1 and not is_dear(large[0])

    def _flattened(self, node: Node) -> bool:
        """Whether XLA has the value of `node` in another shape: it multiplies many rows by a matrix as one matrix, and
        what products make, or alone read, is without dims of size 1."""
        if node.aval.ndim <= 2:
            return False
        if is_product(node):
            return 1 in node.shape or self._nodes[node.inputs[-1]].aval.ndim <= 2
        readers = [self._nodes[i] for i in self._users[node.id]]
        return 1 in node.shape and bool(readers) and all(is_product(reader) for reader in readers)

    def _add(self, id: int) -> None:
        """Append the unit of a node, and those that copy its operands."""
        node = self._nodes[id]
        reads, apart = self._reads(node)
        over = reads.keys() - apart if node.op.pointwise and not _branches(node) else set[int]()
        into = self.place[node.inputs[0]] if _updates(node, self._nodes) else None
        if into is not None:
            over.add(into)
        if node.op in BY_COLUMNS and not node.op.several:
            over.add(self.place[node.inputs[-1]])
        for copy in copies_of(node, self._nodes):
            source = self.place[copy.operand]
            for size in copy.sizes:
                source = self._append((source,), size)
            reads.pop(self.place[copy.operand], None)
            reads[source] = None
        parts = [i for i in self._users[id] if i in self._needed] if node.op.several else [id]
        if size := ordered_by(node, self._nodes):
            number = self._append(reads, size)
            for part in parts:
                writes = ((part, self._written_size(part)),)
                self.units[part] = Unit(part, (number, *reads), writes, 0, frozenset((number,)))
            return
        over = over | self._zeros(node, parts, reads)
        writes = tuple([(i, self._written_size(i)) for i in parts])
        scratch = scratch_of(node, self._nodes, self._inside)
        self.units[id] = Unit(id, tuple(reads), writes, scratch, frozenset(over), into)

    def _zeros(self, node: Node, parts: Sequence[int], reads: dict[int, None]) -> set[int]:
        """Append the units of what a loop stacks its results in, which wait for nothing; and `reads` them."""
        carries = node.params.get("carries", 0) if node.op.structured and "length" in node.params else len(parts)
        made = set[int]()
        for part in parts:
            if node.op.several and self._nodes[part].params["index"] >= carries:
                number = self._append((), size_of(self._nodes[part].results))
                reads[number] = None
                made.add(number)
        return made

    def _append(self, reads: Iterable[int], size: int, over: Collection[int] = ()) -> int:
        """Append a unit that writes so many bytes, which are no node's. Returns its number."""
        number = -1 - len(self.units)
        self.units[number] = Unit(number, tuple(reads), ((number, size),), 0, frozenset(over))
        return number

    def _written_size(self, id: int) -> int:
        """The bytes of a node as it is written: what is only summed, in wider numbers, as these."""
        node = self._nodes[id]
        readers = [self._nodes[i] for i in self._users[id]]
        if not readers or node.op is INPUT or not all(_sums(r) and not is_inexact(node.dtype) for r in readers):
            return size_of(node.results)
        return node.size * max(reader.dtype.itemsize for reader in readers)


def shows_all(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether `node` is its first operand as that lies in memory."""
    if node.op.passes:
        return True
    lens = node.op.lens
    if lens is None or not node.op.view:
        return False
    whole = nodes[node.inputs[0]]
    if whole.op.several or whole.size != node.size or whole.dtype.itemsize != node.dtype.itemsize:
        return False
    place = lens.lies(whole.aval, None, **node.params)
    return place is not None and place[0] is None


def _swaps(node: Node) -> bool:
    """Whether `node` is its operand with the last two dims swapped."""
    dims = node.params.get("dims", ()) if node.op.view else ()
    return len(dims) > 1 and dims == (*range(len(dims) - 2), len(dims) - 1, len(dims) - 2)


def is_product(node: Node) -> bool:
    """Whether `node` is a product of matrices, that slides no windows."""
    product = bool(node.op.traits & Trait.CONTRACTS) or node.op.flops is _MATMUL.flops
    return product and not node.op.traits & Trait.PADS


def _updates(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether `node` is its first operand with some elements changed, which XLA does where that lies."""
    op = node.op
    if op.several or op.structured or op.pointwise or op.flops is not None or len(node.inputs) < 2:
        return False
    return nodes[node.inputs[0]].type == node.aval


def _branches(node: Node) -> bool:
    """Whether XLA asks all elements which way to compute `node`, and has the operands and the result in memory."""
    return bool(node.op.traits & Trait.BRANCHES) and is_inexact(node.dtype) and node.size >= MANY


def is_loop(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether XLA can compute an element of the result where it is read."""
    op = node.op
    if op.impure or op.several or op.flops is not None:
        return False
    if _branches(node):
        return False
    if op.pointwise or op.view or not node.inputs:
        return True
    return op.moves and (bool(op.traits & Trait.LINEAR) or len(node.inputs) == 1 or _gathers(node, nodes))


def _gathers(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether `node` picks elements of one array by number."""
    kinds = [nodes[i].dtype.kind in "iu" for i in node.inputs]
    return kinds.count(False) == 1 and len(kinds) > 1


def _sums(node: Node) -> bool:
    """Whether `node` is a sum along axes, or, as a softmax, begins with one."""
    op = node.op
    if op.parts is ROWS and not op.moves and "reverse" not in op.params:
        return True
    reduces = op.flops is None and "keepdims" in op.params and not op.moves
    return reduces and bool(op.traits & Trait.LINEAR)


def is_dear(node: Node) -> bool:
    """Whether XLA will not compute `node` twice."""
    return node.op.pointwise and node.op.rule.promote == "float"
