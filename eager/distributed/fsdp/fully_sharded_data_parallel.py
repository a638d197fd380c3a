"""The older wrapper of PyTorch, by what `fully_shard` does. As `torch.distributed.fsdp.FullyShardedDataParallel`.

PyTorch flattens the parameters of a wrapper into one; here each is a DTensor, as with `fully_shard`, whatever
`use_orig_params` says.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, ClassVar

import numpy as np

from eager.core.grad_mode import no_grad
from eager.core.pytree import tree_map
from eager.core.tensor import Tensor
from eager.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    optimizer_state_dict_for,
)
from eager.distributed.device_mesh import DeviceMesh, meet
from eager.distributed.fsdp import MixedPrecisionPolicy, api, held_in_parts
from eager.distributed.fsdp.api import *  # noqa: F403 (PyTorch's module has these, too)
from eager.distributed.fsdp.wrap import wrapped
from eager.distributed.tensor.dtensor import is_distributed
from eager.distributed.transparent import Transparent
from eager.nn import Module
from eager.nn.utils.clip_grad import clip_grad_norm_
from eager.optim import Optimizer
from eager.processes.collectives import broadcast
from eager.processes.world import get_process_group_ranks, get_rank, is_initialized

__all__ = ["FullyShardedDataParallel", *api.__all__]  # pyright: ignore[reportUnsupportedDunderAll]

NO_GROUP = "Default process group has not been initialized, please make sure to call init_process_group."
NOT_THAT_CONFIG = "Expected {what} of type {expected} but got {found}"
NESTED = "{name} of {model} is a FullyShardedDataParallel: auto_wrap_policy is for models that have none inside"
BOTH = "Cannot pass both process_group and device_mesh at the same time. Please just pass only one of them."

_CONFIGS = {
    api.StateDictType.FULL_STATE_DICT: (api.FullStateDictConfig, api.FullOptimStateDictConfig),
    api.StateDictType.LOCAL_STATE_DICT: (api.LocalStateDictConfig, api.LocalOptimStateDictConfig),
    api.StateDictType.SHARDED_STATE_DICT: (api.ShardedStateDictConfig, api.ShardedOptimStateDictConfig),
}
_REPLICATED = (api.ShardingStrategy.HYBRID_SHARD, api.ShardingStrategy._HYBRID_SHARD_ZERO2)


class FullyShardedDataParallel(Transparent):
    """A model whose parameters, gradients and optimizer's state lie in parts on processes, each with its own batch.

    auto_wrap_policy     which modules inside are wrapped, too: parameters are gathered for a wrapper's forward
    sharding_strategy    see `ShardingStrategy`; processes in a grid are a `device_mesh` of two dims, or two groups
    mixed_precision      see `MixedPrecision`
    ignored_modules, ignored_states  what stays as it is
    param_init_fn        f(module), for modules made on "meta"
    sync_module_states   take parameters and buffers of the first process

    What says when parameters are gathered changes nothing: `backward_prefetch`, `forward_prefetch`,
    `limit_all_gathers`, `cpu_offload`, `device_id`. ValueError without a process group.
    """

    INSIDE: ClassVar[str] = "_fsdp_wrapped_module"

    def __init__(
        self, module: Module, process_group: Any = None, sharding_strategy: api.ShardingStrategy | None = None,
        cpu_offload: api.CPUOffload | None = None, auto_wrap_policy: Any = None,
        backward_prefetch: api.BackwardPrefetch | None = api.BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: api.MixedPrecision | None = None, ignored_modules: Iterable[Module] | None = None,
        param_init_fn: Callable[[Module], None] | None = None, device_id: Any = None,
        sync_module_states: bool = False, forward_prefetch: bool = False, limit_all_gathers: bool = True,
        use_orig_params: bool = False, ignored_states: Iterable[Any] | None = None,
        device_mesh: DeviceMesh | None = None,
    ):  # fmt: skip
        if process_group is not None and device_mesh is not None:
            raise ValueError(BOTH)
        strategy = sharding_strategy or api.ShardingStrategy.FULL_SHARD
        mesh = device_mesh or _mesh(process_group, strategy)
        states = [*(ignored_states or ()), *(ignored_modules or ())]
        ignored: set[Tensor] = {p for s in states for p in (s.parameters() if isinstance(s, Module) else [s])}
        if auto_wrap_policy is not None:
            for name, inner in module.named_modules():
                if isinstance(inner, FullyShardedDataParallel):
                    raise ValueError(NESTED.format(name=name, model=type(module).__name__))
            settings = {
                "sharding_strategy": strategy, "mixed_precision": mixed_precision, "param_init_fn": param_init_fn,
                "sync_module_states": sync_module_states, "ignored_states": ignored, "device_mesh": mesh,
            }  # fmt: skip
            kept = [s for s in states if isinstance(s, Module)]
            wrapped(module, auto_wrap_policy, FullyShardedDataParallel, settings, kept)
        super().__init__(module)
        _made(module, param_init_fn)
        if sync_module_states:
            _alike(module, mesh, ignored)
        given = mixed_precision or api.MixedPrecision()
        if given.buffer_dtype is not None:
            _cast(module, given.buffer_dtype)
        inputs = given.cast_forward_inputs or given.cast_root_forward_inputs
        policy = MixedPrecisionPolicy(given.param_dtype, given.reduce_dtype, None, inputs)
        self.__dict__["_gathering"] = held_in_parts(module, mesh, policy, ignored=ignored)
        self.sharding_strategy, self.mixed_precision, self._mesh = strategy, given, mesh
        self._summoned = 0  # contexts of `summon_full_params`
        self._kept_as = _settings(api.StateDictType.FULL_STATE_DICT, None, None)
        self.register_state_dict_post_hook(_as_told)

    @property
    def module(self) -> Any:
        """The module inside."""
        return self._inside

    def _named_in(self) -> bool:
        return not self._summoned

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A context in which PyTorch adds up gradients before they are averaged: they come to the same sum."""
        yield

    def check_is_root(self) -> bool:
        """Whether this is the outermost wrapper: that has to be known of none inside, which are gathered alike."""
        return True

    @no_grad()
    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale the gradients of all processes so that their total norm is at most `max_norm`; returns what it was."""
        total: Any = clip_grad_norm_(self.parameters(), max_norm, norm_type)
        return total.full_tensor() if is_distributed(total) else total

    def apply(self, fn: Callable[[Module], Any]) -> Any:
        """`fn(module)` for all modules inside, whose parameters are whole meanwhile."""
        with FullyShardedDataParallel.summon_full_params(self):
            return super().apply(fn)

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[Any]:
        """The wrappers in a model; root_only: those in no other."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        if not root_only:
            return found
        inner = {id(m) for outer in found for m in outer.modules() if m is not outer}
        return [m for m in found if id(m) not in inner]

    @staticmethod
    @contextmanager
    def summon_full_params(
        module: Module, recurse: bool = True, writeback: bool = True, rank0_only: bool = False,
        offload_to_cpu: bool = False, with_grads: bool = False,
    ) -> Iterator[None]:  # fmt: skip
        """A context in which parameters are whole. writeback: what is written to them is kept.

        `rank0_only` makes them whole everywhere, too.
        """
        if rank0_only and writeback:
            raise NotImplementedError("with rank0_only the others' parameters would differ. Remedy: writeback=False")
        chosen = [m for m in FullyShardedDataParallel.fsdp_modules(module) if recurse or m is module]
        with ExitStack() as stack:
            for m in chosen:
                stack.enter_context(m._gathering.whole(writeback, with_grads))
                m._summoned += 1
            try:
                yield
            finally:
                for m in chosen:
                    m._summoned -= 1

    @staticmethod
    def set_state_dict_type(
        module: Module, state_dict_type: api.StateDictType, state_dict_config: api.StateDictConfig | None = None,
        optim_state_dict_config: api.OptimStateDictConfig | None = None,
    ) -> api.StateDictSettings:  # fmt: skip
        """Say how state dicts of the wrappers in `module` are. Returns what was said before. RuntimeError for a config
        of another type."""
        before = FullyShardedDataParallel.get_state_dict_type(module)
        told = _settings(state_dict_type, state_dict_config, optim_state_dict_config)
        for m in FullyShardedDataParallel.fsdp_modules(module):
            m._kept_as = told
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> api.StateDictSettings:
        """What `set_state_dict_type` has said of the wrappers in `module`."""
        wrappers = FullyShardedDataParallel.fsdp_modules(module)
        return wrappers[0]._kept_as if wrappers else _settings(api.StateDictType.FULL_STATE_DICT, None, None)

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: Module, state_dict_type: api.StateDictType, state_dict_config: api.StateDictConfig | None = None,
        optim_state_dict_config: api.OptimStateDictConfig | None = None,
    ) -> Iterator[None]:  # fmt: skip
        """`set_state_dict_type`, for a context."""
        modules = FullyShardedDataParallel
        before = modules.set_state_dict_type(module, state_dict_type, state_dict_config, optim_state_dict_config)
        try:
            yield
        finally:
            for m in modules.fsdp_modules(module):
                m._kept_as = before

    @staticmethod
    def optim_state_dict(
        model: Module, optim: Optimizer, optim_state_dict: dict[str, Any] | None = None, group: Any = None
    ) -> dict[str, Any]:
        """The state of an optimizer by the names of the parameters, as `state_dict_type` says.

        `optim_state_dict` must be that of `optim` as it is.
        """
        told = FullyShardedDataParallel.get_state_dict_type(model)
        return _told(get_optimizer_state_dict(model, optim), told.state_dict_type, told.optim_state_dict_config)

    @staticmethod
    def optim_state_dict_to_load(
        model: Module, optim: Optimizer, optim_state_dict: dict[str, Any], is_named_optimizer: bool = False,
        load_directly: bool = False, group: Any = None,
    ) -> dict[str, Any]:  # fmt: skip
        """What `optim.load_state_dict` takes, of what `optim_state_dict` gave; load_directly: it is loaded."""
        config = FullyShardedDataParallel.get_state_dict_type(model).optim_state_dict_config
        first = bool(getattr(config, "rank0_only", False)) and is_initialized()
        options = StateDictOptions(full_state_dict=first, broadcast_from_rank0=first)
        found = optimizer_state_dict_for(model, optim, optim_state_dict, options)
        if load_directly:
            optim.load_state_dict(found)
        return found

    @staticmethod
    def full_optim_state_dict(
        model: Module, optim: Optimizer, optim_input: Any = None, rank0_only: bool = True, group: Any = None
    ) -> dict[str, Any]:
        """The whole state of an optimizer by the names of the parameters; rank0_only: the others get {}."""
        config = api.FullOptimStateDictConfig(rank0_only=rank0_only)
        return _told(get_optimizer_state_dict(model, optim), api.StateDictType.FULL_STATE_DICT, config)


def _mesh(group: Any, strategy: api.ShardingStrategy) -> DeviceMesh:
    """The processes of a group, or of a pair of groups (in parts, alike), as a mesh."""
    if meet() == 1 and not is_initialized():
        raise ValueError(NO_GROUP)
    if isinstance(group, tuple):
        inner, outer = (len(get_process_group_ranks(g)) for g in group)
        return DeviceMesh("cpu", np.arange(inner * outer).reshape(outer, inner))
    ranks = np.asarray(get_process_group_ranks(group))
    if strategy is api.ShardingStrategy.NO_SHARD:
        return DeviceMesh("cpu", ranks[:, None])
    if strategy in _REPLICATED:
        return DeviceMesh("cpu", ranks.reshape(-1, int(os.environ.get("LOCAL_WORLD_SIZE", ranks.size))))
    return DeviceMesh("cpu", ranks)


def _made(module: Module, init: Callable[[Module], None] | None) -> None:
    """Give modules without values their memory, and values, as `init` or their own `reset_parameters` does."""
    for m in module.modules():
        own: list[Any] = [*m._parameters.values(), *m._buffers.values()]
        if any(t is not None and t.is_meta and not is_distributed(t) for t in own):
            if init is not None:
                init(m)
                continue
            m.to_empty(device="cpu", recurse=False)
            getattr(m, "reset_parameters", nullcontext)()


@no_grad()
def _alike(module: Module, mesh: DeviceMesh, ignored: set[Any]) -> None:
    """Let all processes have the parameters and buffers of the first."""
    for tensor in (*module.parameters(), *module.buffers()):
        if not is_distributed(tensor) and tensor not in ignored and mesh._numbers is not None:
            group = mesh.get_group() if mesh.ndim == 1 else None
            broadcast(tensor.detach(), mesh._numbers[0], group=group)


def _cast(module: Module, dtype: Any) -> None:
    for m in module.modules():
        for name, buffer in m._buffers.items():
            if buffer is not None and buffer.is_floating_point():
                m._buffers[name] = buffer.to(dtype)


def _settings(kind: api.StateDictType, config: Any, of_optimizer: Any) -> api.StateDictSettings:
    for what, given, known in zip(
        ("state_dict_config", "optim_state_dict_config"), (config, of_optimizer), _CONFIGS[kind], strict=True
    ):
        if given is not None and type(given) is not known:
            raise RuntimeError(NOT_THAT_CONFIG.format(what=what, expected=known, found=type(given)))
    first, second = _CONFIGS[kind]
    return api.StateDictSettings(kind, config or first(), of_optimizer or second())


def _as_told(module: Any, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    """A hook: the part of a state dict that a wrapper has, as `state_dict_type` says."""
    own = {key: value for key, value in state.items() if key.startswith(prefix)}
    told = _told(own, module._kept_as.state_dict_type, module._kept_as.state_dict_config)
    for key in own:
        if key in told:
            state[key] = told[key]
        else:
            del state[key]


@no_grad()
def _told(state: dict[str, Any], kind: api.StateDictType, config: Any) -> dict[str, Any]:
    """`state` with its tensors whole, or as this process's parts. {} for those that are to get nothing."""

    def one(value: Any) -> Any:
        if kind is not api.StateDictType.SHARDED_STATE_DICT and is_distributed(value):
            value = value.full_tensor() if kind is api.StateDictType.FULL_STATE_DICT else value.to_local()
        return value.cpu() if config.offload_to_cpu and isinstance(value, Tensor) else value

    found = tree_map(one, state)
    return {} if getattr(config, "rank0_only", False) and is_initialized() and get_rank() else found
