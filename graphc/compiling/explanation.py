"""What `graphc.explain` says of a compiled function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, final

from graphc.display import Block, Displayed, Remark, Section, bytes_text, plain, plural
from graphc.sharding.collectives import compiled, total
from graphc.sharding.propagation import described, propagated

if TYPE_CHECKING:
    from graphc.compiling.specializations import Specialization

COMPILED_LONG = 1.0  # seconds in XLA, from which on they are worth a remedy
FEW_CALLS = 20  # of programs that took that long


class Decision(NamedTuple):
    """What a program was traced for: Python read `value` in the line `where`.

    kind  "path" of the user's code, or "size by values (...)" of a function whose result has that size
    """

    kind: str
    value: str
    where: str


class Backward(NamedTuple):
    """The program of the gradients: its nodes, the seconds that each stage of making it took, its `exchanges`."""

    nodes: int
    seconds: Mapping[str, float]
    exchanges: tuple[str, ...] = ()


@final
@dataclass(frozen=True, repr=False)
class ProgramExplanation(Displayed):
    """One program of a compiled function.

    inputs      name -> type
    reason      why it was made: what has changed, from what to what
    where       the user's line with the call that it was made for
    decisions   what Python has decided by values
    nodes       captured, and optimized
    calls       how often it has run
    notes       what the passes have to say, and what a budget of memory has cost
    seconds     of each stage: trace, passes, jax trace, lower, xla, load
    backend     "jax" or "numpy", on which it runs; and why, where there was a choice
    device      where it runs, if its tensors lie elsewhere than on the CPU; else ""
    exchanges   on a mesh: which collectives are predicted, and which XLA has made
    memory      bytes of results and temporaries; None before the first call, or where the backend does not tell
    backward    of the gradients; None before they were wanted
    cautions    what is taken as constant and cannot be watched
    """

    inputs: Mapping[str, str]
    reason: str
    where: str
    decisions: tuple[Decision, ...]
    nodes: tuple[int, int]
    calls: int
    notes: tuple[str, ...]
    seconds: Mapping[str, float]
    backend: str
    choice: str
    device: str
    exchanges: tuple[str, ...]
    memory: int | None
    backward: Backward | None
    cautions: tuple[str, ...]

    @classmethod
    def of(cls, made: Specialization) -> ProgramExplanation:
        """What is known of a program now."""
        forward, backward = made.runner.forward, made.runner.backward
        graph = forward.graph
        why = f"not on numpy: {made.runner.unsuitable}" if made.runner.unsuitable else ""
        return cls(
            {name: str(aval) for name, aval in zip(graph.input_names, graph.input_avals(), strict=True)},
            made.reason,
            made.where,
            tuple(Decision(f"size by values ({d.counts})" if d.counts else "path", d.shown, d.where)
                  for d in made.program.checks.decisions),
            (len(made.program.graph), len(graph)),
            made.calls,
            (*(note for record in graph.history for note in record.notes), *filter(None, [made.runner.memory_note])),
            {**made.seconds, **forward.seconds},
            "numpy" if forward.on_host else "jax",
            f"backend {made.choice.reason}" if made.choice is not None else why,
            "" if made.runner.where is None else str(made.runner.where),
            tuple(_on_mesh(forward)),
            forward.memory,
            None if backward is None else Backward(len(backward.graph), dict(backward.seconds), (*_on_mesh(backward),)),
            tuple(made.environment.impure),
        )  # fmt: skip

    def blocks(self) -> Iterator[Block]:
        """The types of the inputs, and below them all else."""
        memory = "" if self.memory is None else f", {bytes_text(self.memory)} of results and temporaries"
        lines = [
            f"because: {self.reason}" + (f" (called at {self.where})" if self.where else ""),
            *(f"{d.kind}: {d.value} at {d.where}" for d in self.decisions),
            f"{self.nodes[0]} -> {self.nodes[1]} nodes, {plural(self.calls, 'call')}",
            *self.notes,
            _milliseconds(self.seconds),
            self.choice or f"runs on {self.device or self.backend}{memory}",
            *self.exchanges,
        ]
        if self.backward is not None:
            lines.append(f"backward: {self.backward.nodes} nodes, {_milliseconds(self.backward.seconds)}")
            lines += self.backward.exchanges
        cautions = [Remark(f"caution: {message}", "open") for message in self.cautions]
        inputs = ", ".join(f"{name}: {aval}" for name, aval in self.inputs.items())
        yield Section(Remark(f"({inputs})"), [*map(Remark, lines), *cautions])


@final
@dataclass(frozen=True, repr=False)
class CompiledExplanation(Displayed):
    """Every program of a compiled function.

    programs  those that are kept, of each signature the latest used first
    retraces  why each trace was made, in order; the first is "first call"
    sizes     which graphs serve for any size, what was refused, and what ran eagerly
    """

    name: str
    programs: tuple[ProgramExplanation, ...]
    retraces: tuple[str, ...]
    sizes: tuple[str, ...] = ()

    @property
    def seconds(self) -> dict[str, float]:
        """What each stage took, of all programs together; those of the gradients in "backward"."""
        total: dict[str, float] = {}
        for program in self.programs:
            backward = program.backward and {"backward": sum(program.backward.seconds.values())}
            for stage, seconds in (*program.seconds.items(), *(backward or {}).items()):
                total[stage] = total.get(stage, 0.0) + seconds
        return total

    @property
    def remedies(self) -> tuple[str, ...]:
        """What could be done, in the function or in how it is compiled, so that less is compiled."""
        return tuple(remedy for applies, remedy in _REMEDIES if applies(self))

    def to_dict(self) -> dict[str, Any]:
        """The fields, the total of the seconds, and the remedies, as plain values."""
        return {**plain(self), "seconds": self.seconds, "remedies": [*self.remedies]}

    def blocks(self) -> Iterator[Block]:
        """How many programs, each of them, what could be done, and what is to be said of sizes."""
        retraced = f", {len(self.retraces)} made" if len(self.retraces) != len(self.programs) else ""
        programs = [block for program in self.programs for block in program.blocks()]
        remedies = [Remark(f"remedy: {remedy}", "open") for remedy in self.remedies]
        title = Remark(f"{self.name}: {plural(len(self.programs), 'program')}{retraced}")
        yield Section(title, [*programs, *remedies, *map(Remark, self.sizes)])


def _sizes_vary(e: CompiledExplanation) -> bool:
    return sum(" has shape " in reason for reason in e.retraces) > 1


def _values_are_read(e: CompiledExplanation) -> bool:
    return any("Python reads values" in sentence for sentence in e.sizes)


def _compiled_for_little(e: CompiledExplanation) -> bool:
    calls = sum(p.calls for p in e.programs)
    return e.seconds.get("xla", 0.0) > COMPILED_LONG and calls < FEW_CALLS and len(e.programs) > 1


# (whether it applies, what to do)
_REMEDIES = (
    (_sizes_vary, "several shapes were traced; graphc.compile(dynamic=True) traces once for any first size"),
    (_values_are_read, "keep that value in a tensor (torch.where, products with masks): Python's `if` and float() on "
     "it make a program for each value"),
    (_compiled_for_little, "XLA took longer than these calls may save; graphc.compile(backend='auto') begins on NumPy "
     "and compiles once that pays"),
    (lambda e: any(p.cautions for p in e.programs), "pass what cannot be watched as an argument"),
)  # fmt: skip


def explanation(
    name: str, specializations: Sequence[Specialization], log: Sequence[str], sizes: Sequence[str] = ()
) -> CompiledExplanation:
    """The programs of a compiled function, as they are now."""
    return CompiledExplanation(name, tuple(map(ProgramExplanation.of, specializations)), tuple(log), tuple(sizes))


def _on_mesh(executable: Any) -> list[str]:
    """Which collectives are predicted for a program, and which XLA has made: it is compiled once more to be read."""
    if getattr(executable, "layout", None) is None:
        return []
    found = propagated(executable.graph, executable.layout)
    made = total(compiled(executable.hlo))
    real = ", ".join(f"{count} {kind} ({size:,} bytes)" for kind, (count, size) in made.items())
    return [*described(found), f"  compiled: {real or 'no collectives'}, per device"]


def _milliseconds(stages: Mapping[str, float]) -> str:
    shown = ", ".join(f"{stage} {seconds * 1e3:.1f} ms" for stage, seconds in stages.items())
    return shown or "not run yet"
