"""The cost of a node: what decides between two ways to compute the same thing.

In units of one scalar operation. A pointwise op costs an operation an element; matrix products and convolutions
declare theirs (`Op.flops`); every result that is not a view is written once, which on a CPU costs about as much as
a few operations; views, constants, inputs and checks of what is there cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphc.ir import Node

WRITE = 2  # scalar operations that writing one element is worth
# Products run several operations in the time of one: vector units, and operands that stay in cache.
PRODUCT_RATE = 8
FEW_RATE = 10  # the same beside what it takes to read the operands, of few columns
HALF = 2  # times as long as a float's takes an operand of half precision to be read by a product, which converts it
FUNCTION = 8  # an exponential, a logarithm, a division


def node_cost(node: Node, nodes: Mapping[int, Node]) -> float:
    """The cost of computing `node` from its operands."""
    if not node.inputs or node.op.view or node.op.passes:
        return 0.0
    return work(node, nodes) + WRITE * node.size


def work(node: Node, nodes: Mapping[int, Node]) -> float:
    """The part of `node_cost` that is left where the result is not written: where its users compute it on the way."""
    count = operations(node, nodes)
    if node.op.flops is not None:
        read = sum([nodes[i].size for i in node.inputs]) if node.inputs else 0
        read *= HALF if node.results[0].dtype.itemsize == 2 else 1
        return of_product(count, read)
    return count * (FUNCTION if node.op.pointwise and node.op.rule.promote == "float" else 1)


def of_product(count: float, read: float) -> float:
    """The work of a product of so many scalar operations, which reads so many elements.

    Of a matrix and a vector, the matrix is read and no more. Each further column takes time, if less than to read it:
    measured, eight rows times eight columns, of 4,800 elements each, take 1.5 times as long as eight sums of products.
    """
    return max(count / PRODUCT_RATE, read + max(0.0, count - 2 * read) / FEW_RATE)


def operations(node: Node, nodes: Mapping[int, Node]) -> float:
    """The number of scalar operations, those that take long counted as one."""
    op = node.op
    if not node.inputs or op.view or op.passes:
        return 0.0
    if op.flops is not None:
        return op.flops([nodes[i].type for i in node.inputs], node.type, node.params)
    return max([nodes[i].size for i in node.inputs] + [node.size])
