"""What can be saved and restored. As `torch.distributed.checkpoint.stateful`."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """An object with a `state_dict`, which `load_state_dict` takes back: modules, optimizers, schedulers, loaders."""

    def state_dict(self) -> dict[str, Any]:
        """The state, as a dict of values that can be saved."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)
