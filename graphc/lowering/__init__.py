"""Lowering: a graph becomes a JAX function, compiled by XLA; or one of NumPy. The one importer of jax."""

from graphc.lowering import loading  # noqa: F401  (JAX, before any other module loads it)
from graphc.lowering.executable import ELSEWHERE, Executable, block
from graphc.lowering.host import HostExecutable, unsuitable
from graphc.lowering.host_memory import ALIGNMENT, alias, aligned, release
from graphc.lowering.lowering import BACKENDS, lower
from graphc.lowering.program_devices import NOTHING, Offload, platform_of

__all__ = [
    "ALIGNMENT",
    "BACKENDS",
    "ELSEWHERE",
    "NOTHING",
    "Executable",
    "HostExecutable",
    "Offload",
    "alias",
    "aligned",
    "block",
    "lower",
    "platform_of",
    "release",
    "unsuitable",
]  # fmt: skip
