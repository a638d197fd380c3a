"""What a program takes of memory, for readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from graphc.display import Block, Code, Displayed, Remark, Section, plain
from graphc.footprint.liveness import Liveness, liveness
from graphc.footprint.sizes import shown
from graphc.ir import Graph, Node
from graphc.lowering.stages import Figures
from graphc.ops.aval import types_text

LARGEST = 3  # named in an error
LISTED = 12  # in a report


class Alive(NamedTuple):
    """A value that is alive at the peak: its bytes, its type, the op that makes it, and the line and module of that."""

    bytes: int
    type: str
    op: str
    where: str
    scope: str

    def __str__(self) -> str:
        made = f"{self.op} at {self.where}" if self.where else self.op
        return f"{shown(self.bytes):>10}  {self.type}  {made}" + (f" [{self.scope}]" if self.scope else "")


@final
@dataclass(frozen=True, repr=False)
class ProgramMemory(Displayed):
    """What one program takes, in bytes.

    name         of the program
    arguments, outputs, temporaries   at most at one time; outputs are those with memory of their own
    state        of the arguments, what is written over (parameters, moments, buffers)
    alive        the temporaries, and outputs, at the peak, largest first, by the model
    estimate     the peak by the model
    exact        the peak of XLA's plan, if that was asked for: the figures are those of the plan then
    host         what lies in the memory of the host, besides
    """

    name: str
    arguments: int
    outputs: int
    temporaries: int
    state: int
    alive: tuple[Alive, ...]
    estimate: int
    exact: int | None = None
    host: int = 0

    @property
    def peak(self) -> int:
        """The most at one time: arguments, outputs and temporaries."""
        return self.arguments + self.outputs + self.temporaries

    def to_dict(self) -> dict[str, Any]:
        """The fields, and the peak."""
        return {**plain(self), "peak": self.peak, "alive": [value._asdict() for value in self.alive]}

    def blocks(self) -> Iterator[Block]:
        """The peak, what it consists of, and the largest values that are alive then."""
        parts = f"arguments {shown(self.arguments)} (state {shown(self.state)}), outputs {shown(self.outputs)}"
        parts += f", on the host {shown(self.host)}" if self.host else ""
        by = "by an estimate" if self.exact is None else f"by XLA's plan (estimate {shown(self.estimate)})"
        lines = [str(value) for value in self.alive[:LISTED]]
        rest = self.alive[LISTED:]
        if rest:
            lines.append(f"{shown(sum(a.bytes for a in rest)):>10}  in {len(rest)} others")
        whole = [Remark(f"{parts}, temporaries {shown(self.temporaries)}"), Remark("alive at the peak:")]
        yield Section(
            f"{self.name}: peak {shown(self.peak)}, {by}", [*whole, *([Code("\n".join(lines))] if lines else [])]
        )


@final
@dataclass(frozen=True, repr=False)
class Memory(Displayed):
    """What a function takes: the device, and each of its programs (forward, and backward if gradients are wanted)."""

    device: str
    programs: tuple[ProgramMemory, ...]

    @property
    def peak(self) -> int:
        """Bytes at the peak of the program that takes most."""
        return max(program.peak for program in self.programs)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"device": self.device, "peak": self.peak, "programs": [program.to_dict() for program in self.programs]}

    def blocks(self) -> Iterator[Block]:
        """The peak, and each program."""
        found = [block for program in self.programs for block in program.blocks()]
        yield Section(f"{self.programs[0].name} on {self.device}: {shown(self.peak)}", found)


def described(graph: Graph, found: Liveness, plan: Figures | None = None) -> ProgramMemory:
    """The report of one program, with the sizes of XLA's `plan` if that is known."""
    sizes = found if plan is None else plan
    return ProgramMemory(
        graph.name, sizes.arguments, sizes.outputs - sizes.aliased, sizes.temporaries, found.aliased,
        tuple(alive_at_peak(found)), found.peak, None if plan is None else plan.peak, found.host,
    )  # fmt: skip


def alive_at_peak(found: Liveness) -> list[Alive]:
    """The values that `found` has alive at its peak, largest first."""
    spans = [span for span in found.spans if span.start <= found.step <= span.stop]
    # a copy is named after what it is of, and zeros after the loop that stacks its results in them
    sources = {i: unit.id for unit in found.order for i in unit.reads}
    sources |= {unit.id: unit.reads[0] for unit in found.order if unit.reads}
    named = [_alive(found.graph, span.at(found.step), span.size, sources) for span in spans]
    return sorted(named, key=lambda value: -value.bytes)


def _alive(graph: Graph, id: int, size: int, sources: Mapping[int, int]) -> Alive:
    what = ""
    while id not in graph.nodes:
        id, what = sources[id], "copy of "
    node = graph.nodes[id]
    return Alive(size, types_text(node.results), what + _maker(node), node.where, node.scope)


def _maker(node: Node) -> str:
    return f"argument {node.params['name']}" if not node.inputs and "name" in node.params else node.op.name


def largest(graph: Graph) -> list[str]:
    """The largest values at the peak of `graph`, and the lines that make them."""
    found = alive_at_peak(liveness(graph))
    return [" ".join(str(value).split()) for value in found[:LARGEST]]
