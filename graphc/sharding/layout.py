"""Layout: where the inputs and outputs of a graph lie on a mesh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

from graphc.ir import Graph
from graphc.sharding.mesh import Mesh, mesh_of
from graphc.sharding.sharding import Axes, P, Sharding, check_divides, sharding_of


@final
class Layout(NamedTuple):
    """Where the inputs and outputs of a graph lie. None: where XLA likes.

    own, made  between processes, for each input, and for each output that a caller sees: the axes along which each
               process has a value of its own (`graphc.sharding.regions`); empty if there is no such input
    """

    mesh: Mesh
    inputs: tuple[Sharding | None, ...]
    outputs: tuple[Sharding | None, ...]
    own: tuple[Axes, ...] = ()
    made: tuple[Axes, ...] = ()


def layout_of(graph: Graph, mesh: Any, inputs: Any = None, outputs: Any = None) -> Layout:
    """What a user means by placements or specs of the inputs (by name or in order) and outputs (by number or in order).

    Inputs of which nothing is said are replicated. Raises TypeError and ValueError for what cannot be.
    """
    if isinstance(mesh, Layout):
        return mesh
    on = mesh_of(mesh)
    given = _each(inputs, graph.input_names, "input")
    wanted = _each(outputs, range(len(graph.outputs)), "output")
    found: list[Sharding] = []
    for k, aval in enumerate(graph.input_avals()):
        found.append(sharding_of(given.get(k), len(aval.shape), on))
        if found[-1].partial:
            raise ValueError(f"input '{graph.input_names[k]}' cannot be given as terms of a sum")
        check_divides(found[-1], aval.shape, on, f"input '{graph.input_names[k]}'")
    kept: list[Sharding | None] = []
    for k, aval in enumerate(graph.output_avals()):
        sharding = None if wanted.get(k) is None else sharding_of(wanted[k], len(aval.shape), on)
        if sharding is not None:
            check_divides(sharding, aval.shape, on, f"output {k}")
        kept.append(sharding)
    return Layout(on, tuple(found), tuple(kept))


def _each(given: Any, names: Sequence[Any], what: str) -> dict[int, Any]:
    """By number, what is said of each."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        if unknown := [name for name in given if name not in names]:
            raise ValueError(f"there is no {what} {unknown[0]!r}; there are {', '.join(map(str, names))}")
        return {k: given[name] for k, name in enumerate(names) if name in given}
    if isinstance(given, P) or len(given) != len(names):
        raise ValueError(f"expected a sharding for each of {len(names)} {what}s, got {given!r}")
    return dict(enumerate(given))
