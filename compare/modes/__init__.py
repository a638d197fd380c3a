"""The ways to run a case, and the registry that more can be added to."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from compare.modes.calls import Compiled, Eager, Microbatched
from compare.modes.gradient_oracles import FiniteDifferences, JaxGrad
from compare.modes.graphs import GraphMode, OpByOp
from compare.modes.protocol import Mode
from compare.modes.pytorch import PyTorch
from compare.modes.ranks import Ranks
from compare.modes.reference import Reference
from compare.modes.sharded import ByParts, Sharded
from graphc.passes.pipeline import default_passes

PASSES = "passes"
EAGER = Eager()
COMPILED = Compiled()
JAX = JaxGrad()
_modes: dict[str, tuple[Mode, bool]] = {}  # by name: the mode, and whether `check` runs it unasked


def register_mode(mode: Mode, default: bool = True) -> Mode:
    """Add `mode` to those that `check` knows; a mode of the same name is replaced.

    default  whether it is run if no modes are named
    """
    _modes[mode.name] = (mode, default)
    return mode


def mode_names() -> list[str]:
    """What `modes_named` knows, in order."""
    return [name for known in _modes for name in ((known, PASSES) if known == "graph" else (known,))]


def modes_named(names: Sequence[str | Mode] | None, besides: Sequence[Mode] = ()) -> list[Mode]:
    """The modes of these names, or those that are run by default; a Mode stands for itself.

    besides: modes that are known for this call only, and run by default

    "passes" stands for one mode a pass, which is run after "graph". Raises ValueError.
    """
    table: dict[str, Sequence[Mode]] = {name: (mode,) for name, (mode, _) in _modes.items()}
    table[PASSES] = [GraphMode(k, name) for k, (name, _) in enumerate(default_passes(), 1)]
    table |= {mode.name: (mode,) for mode in besides}
    wanted = [*(n for n in mode_names() if n == PASSES or _modes[n][1]), *besides] if names is None else names
    found: list[Mode] = []
    for wish in wanted:
        if not isinstance(wish, str):
            found.append(wish)
        elif wish in table:
            found += table[wish]
        else:
            raise ValueError(f"unknown mode '{wish}'; registered are {', '.join(mode_names())}")
    return found


for _mode in (EAGER, Reference(), GraphMode(), COMPILED, JAX, FiniteDifferences()):
    register_mode(_mode)
for _mode in (
    Compiled("strict", strict=True),  # by the rules and the XLA that keep every bit
    Compiled("numpy", backend="numpy"),
    OpByOp(),
    Sharded(),
    ByParts(),
    Ranks(),
):  # each computes for itself
    register_mode(_mode, default=False)
if find_spec("torch") is not None:
    register_mode(PyTorch(), default=False)

__all__ = [
    "COMPILED", "EAGER", "JAX", "ByParts", "Microbatched", "Mode", "Ranks", "Sharded", "mode_names", "modes_named",
    "register_mode",
]  # fmt: skip
