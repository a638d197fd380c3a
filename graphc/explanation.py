"""What `graphc.explain` says of a compiled function."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.entries import Entry


def explanation(name: str, entries: Sequence[Entry], log: Sequence[str]) -> str:
    """The programs of a compiled function: signature, reason, guards, path, size and times of each."""
    made = f", {len(log)} made" if len(log) != len(entries) else ""
    lines = [f"{name}: {_plural(len(entries), 'program')}{made}"]
    for entry in entries:
        graph = entry.runner.forward.graph
        inputs = ", ".join(f"{n}: {a}" for n, a in zip(graph.input_names, graph.input_avals(), strict=True))
        lines.append(f"  ({inputs})")
        lines.append(f"    because: {entry.reason}")
        for decision in entry.program.decisions:
            lines.append(f"    path: {decision.shown} at {decision.where}")
        lines.append(f"    {len(entry.program.graph)} -> {len(graph)} nodes, {_plural(entry.calls, 'call')}")
        stages = ", ".join(f"{stage} {seconds * 1e3:.1f}" for stage, seconds in entry.seconds.items())
        lines.append(f"    ms: {stages}")
        if entry.runner.backward is not None:
            lines.append(f"    backward: {len(entry.runner.backward.graph)} nodes")
        lines += [f"    caution: {message}" for message in entry.environment.impure]
    return "\n".join(lines)


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
