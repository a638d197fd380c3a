"""What `graphc.compile` was told."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, TypedDict, final

from graphc.compiling.sharded import Shardings
from graphc.footprint.sizes import budget_of
from graphc.lowering import BACKENDS
from graphc.passes import Settings
from graphc.passes.settings import AT_ONCE

AUTO = "auto"
OPTIMIZER = "optimizer"


class Keywords(TypedDict, total=False):
    """The keywords of `graphc.compile`, which says what they mean."""

    device: str | None
    strict: bool
    level: int
    without: str | Collection[str]
    dynamic: bool | None
    max_retraces: int | None
    backend: str
    memory: int | float | str | None
    microbatches: int
    offload: str | None
    mesh: Any
    in_shardings: Any
    out_shardings: Any
    state_shardings: Any


NO_OFFLOAD = "offload= is for programs of XLA on one device, not for {}"


@final
class Options(NamedTuple):
    """The keywords, checked. memory: bytes, or a fraction; backend: one of `BACKENDS`, or `AUTO`."""

    device: str | None = None
    settings: Settings = Settings()
    dynamic: bool | None = None
    max_retraces: int | None = None
    backend: str = "jax"
    memory: int | float | None = None
    microbatches: int = 1
    offload: str | None = None
    shardings: Shardings | None = None

    @classmethod
    def of(
        cls, device: str | None, dynamic: bool | None, max_retraces: int | None, backend: str,
        memory: int | float | str | None, microbatches: int, offload: str | None,
        settings: Settings, shardings: Shardings | None,
    ) -> Options:  # fmt: skip
        """Raises ValueError for what does not go together."""
        if type(microbatches) is not int or microbatches < 1:
            raise ValueError(f"microbatches must be a positive integer, got {microbatches!r}")
        budget = None if memory is None else budget_of(memory)
        if backend not in BACKENDS and backend != AUTO:
            raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, {AUTO}, got {backend!r}")
        if shardings is not None and backend == "numpy":
            raise ValueError("backend 'numpy' computes on one device, not on a mesh")
        if backend == AUTO and (shardings is not None or settings.strict or device not in (None, "cpu")):
            backend = "jax"
        if budget is not None and backend != "jax":
            raise ValueError(f"memory= is a budget for programs of XLA, and backend {backend!r} is not")
        if backend == "numpy" and device not in (None, "cpu"):
            raise ValueError(f"backend 'numpy' computes on the CPU, not on device {device!r}")
        if offload not in (None, OPTIMIZER):
            raise ValueError(f"offload must be {OPTIMIZER!r} or None, got {offload!r}")
        if offload is not None and (backend != "jax" or shardings is not None):
            raise ValueError(NO_OFFLOAD.format("a mesh" if shardings is not None else f"backend {backend!r}"))
        if microbatches > 1:
            settings = settings._replace(without=settings.without | AT_ONCE)
        return cls(device, settings, dynamic, max_retraces, backend, budget, microbatches, offload, shardings)

    def check_mesh(self) -> None:
        """Raise ValueError if the options are for programs of one device: this one's tensors are on a mesh."""
        if self.offload is not None:
            raise ValueError(NO_OFFLOAD.format("a mesh"))
