"""What `graphc.explain` says of a compiled function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.compiling.specializations import Specialization
from graphc.sharding.collectives import compiled, total
from graphc.sharding.propagation import described, propagated


def explanation(
    name: str, specializations: Sequence[Specialization], log: Sequence[str], sizes: Sequence[str] = ()
) -> str:
    """The programs of a compiled function: signature, reason, path, size and times of each; and `sizes`."""
    retraced = f", {len(log)} made" if len(log) != len(specializations) else ""
    lines = [f"{name}: {_plural(len(specializations), 'program')}{retraced}"]
    for made in specializations:
        graph = made.runner.forward.graph
        inputs = ", ".join(f"{n}: {a}" for n, a in zip(graph.input_names, graph.input_avals(), strict=True))
        lines.append(f"  ({inputs})")
        lines.append(f"    because: {made.reason}")
        for decision in made.program.checks.decisions:
            kind = f"size by values ({decision.counts})" if decision.counts else "path"
            lines.append(f"    {kind}: {decision.shown} at {decision.where}")
        lines.append(f"    {len(made.program.graph)} -> {len(graph)} nodes, {_plural(made.calls, 'call')}")
        lines += [f"    {note}" for record in graph.history for note in record.notes]
        if made.runner.where is not None:
            lines.append(f"    on {made.runner.where}")
        lines.append(f"    {_milliseconds({**made.seconds, **made.runner.forward.seconds})}")
        if made.runner.memory_note:
            lines.append(f"    {made.runner.memory_note}")
        if made.choice is not None:
            lines.append(f"    backend {made.choice.reason}")
        elif made.runner.unsuitable:
            lines.append(f"    not on numpy: {made.runner.unsuitable}")
        backward = made.runner.backward
        lines += _on_mesh(made.runner.forward)
        if backward is not None:
            lines.append(f"    backward: {len(backward.graph)} nodes, {_milliseconds(backward.seconds)}")
            lines += _on_mesh(backward)
        lines += [f"    caution: {message}" for message in made.environment.impure]
    lines += [f"  {sentence}" for sentence in sizes]
    return "\n".join(lines)


def _on_mesh(executable: Any) -> list[str]:
    """Which collectives are predicted for a program, and which XLA has made: it is compiled once more to be read."""
    if getattr(executable, "layout", None) is None:
        return []
    found = propagated(executable.graph, executable.layout)
    made = total(compiled(executable.hlo))
    real = ", ".join(f"{count} {kind} ({size:,} bytes)" for kind, (count, size) in made.items())
    return [*(f"    {line}" for line in described(found)), f"      compiled: {real or 'no collectives'}, per device"]


def _milliseconds(stages: Mapping[str, float]) -> str:
    shown = ", ".join(f"{stage} {seconds * 1e3:.1f} ms" for stage, seconds in stages.items())
    return shown or "not run yet"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
