"""Each process updates a part of the parameters, and keeps the optimizer's state of that part alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.core.tensor import Tensor
from eager.nn.module import typename
from eager.optim.optimizer import Optimizer
from eager.processes.collectives import broadcast
from eager.processes.joining import Join, Joinable, JoinHook
from eager.processes.objects import gather_object
from eager.processes.world import resolved

__all__ = ["ZeroRedundancyOptimizer"]

NO_LIST = "`params` argument should be an iterable of Tensors, but got {}"
ONE_TYPE = "ZeroRedundancyOptimizer only supports using the same dense type for all parameters but got both {} and {}"
NOT_CONSOLIDATED = (
    "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to={})` on all ranks "
    "beforehand if you meant to save the global state."
)
NO_OVERLAP = (
    "ZeroRedundancyOptimizer(overlap_with_ddp=True) is not here. Remedy: leave it out; steps give the same parameters"
)


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An `optimizer_class` of which each process of a group has a part: the first stage of ZeRO (Rajbhandari 2020).

    As `torch.distributed.optim.ZeroRedundancyOptimizer`. The largest parameters are dealt out first, each to the
    process with the fewest elements; a step updates a process's own, and sends them to all others. `state_dict` is of
    all parameters, once `consolidate_state_dict` has collected it. `parameters_as_bucket_view` changes nothing here.

    Raises TypeError, ValueError for parameters that are no Tensors of one dtype.
    """

    def __init__(self, params: Any, optimizer_class: type[Optimizer], process_group: Any = None,
                 parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False, **defaults: Any):  # fmt: skip
        if overlap_with_ddp:
            raise NotImplementedError(NO_OVERLAP)
        self.optim: Optimizer | None = None
        self._collected: list[Any] = []
        Optimizer.__init__(self, _checked(params), defaults)
        self.process_group = resolved(process_group)
        self.rank, self.world_size = self.process_group.rank(), self.process_group.size()
        own = [group for group in self._parts()[self.rank] if group["params"]]
        self.optim = optimizer_class(own, **defaults) if own else None

    def _parts(self) -> list[list[dict[str, Any]]]:
        """For each process the groups, with the parameters that it updates."""
        sizes = [0] * self.world_size
        parts: list[list[dict[str, Any]]] = [[] for _ in sizes]
        for group in self.param_groups:
            dealt: list[list[Tensor]] = [[] for _ in sizes]
            for parameter in sorted(group["params"], key=lambda p: p.numel(), reverse=True):
                rank = sizes.index(min(sizes))
                dealt[rank].append(parameter)
                sizes[rank] += parameter.numel()
            for part, own in zip(parts, dealt, strict=True):
                part.append({**group, "params": own})
        return parts

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with settings of their own; they are dealt out, too."""
        super().add_param_group(param_group)
        if self.optim is not None:
            own = self._parts()[self.rank][-1]
            if own["params"]:
                self.optim.add_param_group(own)

    def _settings_to(self, given: list[dict[str, Any]], taking: list[dict[str, Any]]) -> None:
        """Write the settings of groups to those of the part that has the same parameters."""
        for group in taking:
            first = group["params"][0]
            source = next(g for g in given if any(p is first for p in g["params"]))
            group.update({name: value for name, value in source.items() if name not in ("params", "param_names")})

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update this process's part of the parameters, and get the others from where they are updated."""
        Join.notify_join_context(self)
        loss = None
        if self.optim is not None:
            self._settings_to(self.param_groups, self.optim.param_groups)
            loss = self.optim.step(closure, **kwargs)
        elif closure is not None:
            loss = closure()
        self._send()
        return loss

    def _send(self) -> None:
        works = [
            broadcast(parameter.detach(), group=self.process_group, group_src=rank, async_op=True)
            for rank, groups in enumerate(self._parts())
            for group in groups
            for parameter in group["params"]
        ]
        for work in works:
            if work is not None:
                work.wait()

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the states of all parts in the process `to` of the group, which can then save `state_dict()`."""
        own: Any = {} if self.optim is None else self.optim.state_dict()["state"]
        parts: list[Any] | None = [None] * self.world_size if self.rank == to else None
        gather_object(own, parts, group=self.process_group, group_dst=to)
        self._collected = parts or []

    def state_dict(self) -> dict[str, Any]:
        """The state of all parameters. RuntimeError unless `consolidate_state_dict` has collected it here."""
        if not self._collected:
            raise RuntimeError(NOT_CONSOLIDATED.format(self.rank))
        found: Any = super().state_dict()
        numbers = {id(p): k for k, p in enumerate(self._parameters())}
        for groups, state in zip(self._parts(), self._collected, strict=True):
            own = [numbers[id(parameter)] for group in groups for parameter in group["params"]]
            found["state"].update({own[k]: values for k, values in state.items()})
        found["state"] = dict(sorted(found["state"].items()))
        return found

    def load_state_dict(self, state_dict: Any) -> None:
        """Take over a state of all parameters: settings, and the state of this process's part."""
        super().load_state_dict({**state_dict, "state": {}})
        if self.optim is None:
            return
        numbers = {id(p): k for k, p in enumerate(self._parameters())}
        own = self.optim.state_dict()
        places = [numbers[id(p)] for group in self.optim.param_groups for p in group["params"]]
        given = state_dict["state"]
        state = {k: given[place] for k, place in enumerate(places) if given.get(place) is not None}
        self.optim.load_state_dict({**own, "state": state})
        self._settings_to(self.param_groups, self.optim.param_groups)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Steps without gradients of its own, while other processes go on."""
        return _Stepping(self)

    @property
    def join_device(self) -> Any:
        """That of the parameters."""
        return next(iter(self._parameters())).device

    @property
    def join_process_group(self) -> Any:
        """The group that the parameters are dealt out to."""
        return self.process_group


class _Stepping(JoinHook):
    def __init__(self, optimizer: ZeroRedundancyOptimizer):
        self._optimizer = optimizer

    def main_hook(self) -> None:
        self._optimizer.step()


def _checked(params: Any) -> list[Any]:
    if isinstance(params, Tensor):
        raise TypeError(NO_LIST.format(typename(params)))
    try:
        given = list(params)
    except TypeError:
        raise TypeError(NO_LIST.format(typename(params)).replace("Tensors,", "Tensors or dicts,")) from None
    if not given:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    if not (all(isinstance(p, Tensor) for p in given) or all(isinstance(p, dict) for p in given)):
        raise TypeError("`params` argument should be an iterable of Tensors or dicts")
    every = [p for g in given for p in g["params"]] if isinstance(given[0], dict) else given
    first = typename(every[0])
    for other in map(typename, every):
        if other != first:
            raise ValueError(ONE_TYPE.format(first, other))
    return given
