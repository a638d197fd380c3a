"""The roofline: how fast a program could run at best on this machine, by its arithmetic and by its memory traffic.

S. Williams, A. Waterman, D. Patterson: Roofline, an insightful visual performance model, CACM 52 (2009).
The work is that of the optimized graph, as its ops declare it; the peaks are measured in this process.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from compare.benchmarking.clock import least
from graphc.display import Block, Displayed, Remark, bytes_text
from graphc.ir import Builder, Graph, Ref
from graphc.lowering import block, lower
from graphc.ops.aval import Aval
from graphc.rewrite.cost import operations

PRODUCT = 768  # rows and columns of the product that the peak of arithmetic is measured with
PATIENCE = 0.15  # seconds for each measurement of a peak: other work on the machine must let go once
CACHED, LARGEST = 1 << 16, 1 << 27  # bytes: bounds of the arrays that bandwidth is measured with


@final
@dataclass(frozen=True, repr=False)
class Roofline(Displayed):
    """What bounds a program.

    operations             floating point operations that it makes
    bytes                  that it reads and writes if nothing between inputs and results goes through memory
    operations_per_second  of a product of matrices on this machine: the better of NumPy's and XLA's, or the program's
    bytes_per_second       of a copy as large as those bytes, in cache if the program's data are; the best of the same
    """

    operations: float
    bytes: int
    operations_per_second: float
    bytes_per_second: float

    @property
    def seconds(self) -> float:
        """The least time that the program can take."""
        return max(self.operations / self.operations_per_second, self.bytes / self.bytes_per_second)

    @property
    def bound(self) -> str:
        """ "arithmetic" or "memory": which of the two takes longer."""
        arithmetic = self.operations / self.operations_per_second
        return "arithmetic" if arithmetic > self.bytes / self.bytes_per_second else "memory"

    def reached(self, seconds: float) -> Roofline:
        """The roofline once the program has been seen to take `seconds`: if that beats a peak, the machine was busy
        while the peak was measured, and the program is the better measurement."""
        return replace(
            self,
            operations_per_second=max(self.operations_per_second, self.operations / seconds),
            bytes_per_second=max(self.bytes_per_second, self.bytes / seconds),
        )

    def blocks(self) -> Iterator[Block]:
        """One line."""
        yield Remark(
            f"{self.operations:.3g} operations, {bytes_text(self.bytes)}, bound by {self.bound} "
            f"(peak {self.operations_per_second / 1e9:.3g} Gflop/s, {self.bytes_per_second / 1e9:.3g} GB/s)"
        )


def roofline(graph: Graph) -> Roofline | None:
    """The roofline of `graph`; None if it has control flow, whose work depends on values, or does nothing."""
    nodes = graph.nodes
    if any(node.op.structured for node in nodes.values()):
        return None
    work = [(operations(node, nodes), node.results[0].dtype) for node in graph.operations()]
    total = sum(count for count, _ in work)
    moved = {*graph.inputs, *graph.outputs}
    size = sum(nodes[id].aval.nbytes for id in moved)
    if not total or not size:
        return None
    by_dtype: Counter[np.dtype] = Counter()
    for count, dtype in work:
        by_dtype[dtype] += int(count)
    wide = by_dtype.most_common(1)[0][0] in (np.float64, np.complex128)
    peak = peak_operations("float64" if wide else "float32")
    # a power of two, so that programs of about one size share a measurement
    return Roofline(total, size, peak, peak_bytes(min(max(1 << (size - 1).bit_length(), CACHED), LARGEST)))


@functools.cache
def peak_operations(dtype: str) -> float:
    """Operations a second of a product of matrices, on this machine and in this process."""
    a = np.random.default_rng(0).standard_normal((PRODUCT, PRODUCT)).astype(dtype)
    seconds = _quickest(lambda F, x: F.matmul(x, x), lambda: a @ a, a)
    return 2.0 * PRODUCT**3 / seconds


@functools.cache
def peak_bytes(count: int) -> float:
    """Bytes a second of a copy that touches `count` bytes in all, half of them to read."""
    source = np.zeros(count // 8, np.float32)
    target = np.empty_like(source)
    return count / _quickest(lambda F, x: F.neg(x), lambda: np.copyto(target, source), source)


def _quickest(expression: Callable[[Any, Any], Any], on_numpy: Callable[[], Any], argument: np.ndarray) -> float:
    """Seconds of the quicker of two ways to compute the same."""
    builder = Builder()
    result = expression(builder.language, builder.input("x", Aval(argument.shape, argument.dtype)))
    program = lower(builder.graph("peak", Ref(result.id)))
    own = program.own(argument)
    return min(least(on_numpy, PATIENCE), least(lambda: block(program.call(own)), PATIENCE))
