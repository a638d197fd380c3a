"""The states of a model and its optimizers, by the names of parameters. As `torch.distributed.checkpoint.state_dict`.

The state dict of an optimizer numbers the parameters; here they have the names that they have in the model, without the
"module." of DistributedDataParallel and the "_orig_mod." of `torch.compile`. So a checkpoint fits any such wrapping.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from eager.core.grad_mode import no_grad
from eager.core.pytree import tree_map
from eager.core.tensor import Tensor
from eager.distributed.checkpoint.peers import peers
from eager.distributed.tensor.dtensor import is_distributed
from eager.distributed.transparent import bare
from eager.functional.creation import zeros, zeros_like
from eager.nn.module import Module
from eager.optim import Optimizer
from eager.processes.world import get_rank, is_initialized

WRAPPERS = ("module", "_orig_mod")  # the attribute of a wrapper that has the model
NO_OPTIMIZER = "Optimizers are not passed in but optim_only is set to True."
NEEDS_FULL = "full_state_dict must be True when broadcast_from_rank0 is True."
NO_MODEL_STATE = (
    "The option indicates that model state_dict is required to save or load, but model state_dict is empty."
)
NO_OPTIMIZER_STATE = (
    "The option indicates that model state_dict is required to save, or load but optim state_dict is empty. {found}"
)
MISSING_STATE = (
    "Missing optimizer state for parameter '{name}' in checkpoint. The parameter requires gradients but has no saved "
    "optimizer state. To load anyway, use StateDictOptions(strict=False)."
)
NO_FLATTENING = "Flattening optimizer state_dict only supports tensor, int, float, dict states now. Type is {kind}."


@dataclass
class StateDictOptions:
    """How states are taken and set. As PyTorch's.

    cpu_offload                   tensors on the CPU
    ignore_frozen_params          without parameters that do not require grad
    strict                        whether a parameter without a saved state is an error
    broadcast_from_rank0          set what rank 0 gives, on all ranks; needs `full_state_dict`
    flatten_optimizer_state_dict  one flat dict, with names such as "state.fc.weight.exp_avg"

    full_state_dict               tensors whole; with `cpu_offload` the first process alone gets them, the others {}

    `keep_submodule_prefixes`: only for `submodules`.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False


def _names(model: Module) -> dict[str, str]:
    """The names in the state dict of a model that has wrappers -> those without the wrappers."""
    wrapped: list[str] = []
    for path, module in model.named_modules(remove_duplicate=False):
        children = dict(module.named_children())
        if len(children) == 1 and (name := next(iter(children))) in WRAPPERS and _is_wrapper(module, name):
            wrapped.append(f"{path}.{name}." if path else f"{name}.")
    found: dict[str, str] = {}
    for name in model.state_dict():
        short = name
        for prefix in sorted(wrapped, key=len, reverse=True):  # the innermost first: the outer ones stay prefixes
            if short.startswith(prefix):
                head = prefix[:-1].rpartition(".")[0]
                short = (f"{head}." if head else "") + short[len(prefix) :]
        found[name] = short
    return found


def _is_wrapper(module: Module, name: str) -> bool:
    return name == "_orig_mod" or type(module).__name__ in ("DistributedDataParallel", "DataParallel")


def _tuple(optimizers: Optimizer | Iterable[Optimizer]) -> tuple[Optimizer, ...]:
    return (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)


def _parameters(model: Module) -> dict[int, str]:
    """id of a parameter -> its name: the first, of those that it has."""
    names = _names(model)
    return {id(p): names.get(bare(name), bare(name)) for name, p in model.named_parameters()}


def _finished(state: Any, options: StateDictOptions) -> Any:
    """`state` as the options say it. What is whole and on the CPU is for a file: the first process alone gets it."""
    if options.full_state_dict:
        state = tree_map(lambda x: x.full_tensor() if is_distributed(x) else x, state)
    if not options.cpu_offload:
        return state
    if options.full_state_dict and is_initialized() and get_rank():
        return {}
    return tree_map(lambda x: x.cpu() if isinstance(x, Tensor) else x, state)


@no_grad()
def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state dict of `model`, by the names that it has without wrappers; the tensors are the model's own.

    submodules: only what belongs to these modules
    """
    options = _checked(options)
    names = _names(model)
    state = {names[name]: value for name, value in model.state_dict().items()}
    if submodules:
        prefixes = [f"{name}." for name, module in model.named_modules() if module in submodules]
        state = {
            name if options.keep_submodule_prefixes else name.removeprefix(prefix): value
            for name, value in state.items() for prefix in prefixes if name.startswith(prefix)
        }  # fmt: skip
    if options.ignore_frozen_params:
        frozen = {names[name] for name, p in model.named_parameters(remove_duplicate=False) if not p.requires_grad}
        state = {name: value for name, value in state.items() if name not in frozen}
    if not state and not submodules and not options.ignore_frozen_params and options.strict:
        raise RuntimeError(NO_MODEL_STATE)
    return _finished(state, options)


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The states of all optimizers in one dict {"state": {name: ...}, "param_groups": [...]}.

    An optimizer that has no state yet gets one, by a step with gradients of zero. `submodules` changes nothing.
    """
    options, chosen = _checked(options), _tuple(optimizers)
    if not chosen:
        raise RuntimeError(NO_OPTIMIZER)
    names = _parameters(model)
    merged: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in chosen:
        _initialize(optimizer)
        parameters = list(chain.from_iterable(group["params"] for group in optimizer.param_groups))
        state = optimizer.state_dict()
        merged["state"] |= {names[id(parameters[k])]: value for k, value in state["state"].items()}
        for group in state["param_groups"]:
            merged["param_groups"].append({**group, "params": [names[id(parameters[k])] for k in group["params"]]})
    return _finished(_flat(merged) if options.flatten_optimizer_state_dict else merged, options)


def get_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """`get_model_state_dict`, and `get_optimizer_state_dict`, {} without optimizers."""
    chosen = _tuple(optimizers)
    model_state = get_model_state_dict(model, submodules=submodules, options=options)
    return model_state, get_optimizer_state_dict(model, chosen, options=options) if chosen else {}


def set_model_state_dict(
    model: Module, model_state_dict: Mapping[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Load into `model` what `get_model_state_dict` gave. Returns the missing and the unexpected keys.

    RuntimeError as `load_state_dict` if names or shapes do not fit.
    """
    options = _checked(options)
    state = _from_rank0(model_state_dict, options)
    if not state and options.strict:
        raise RuntimeError(NO_MODEL_STATE)
    long = {short: name for name, short in _names(model).items()}
    return model.load_state_dict({long.get(name, name): value for name, value in state.items()}, strict=options.strict)


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: Mapping[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Load into the optimizers what `get_optimizer_state_dict` gave, flat or not.

    Each takes what belongs to its parameters. RuntimeError, before one is changed, for a parameter that requires grad
    without a saved state, unless the options are not strict.
    """
    options, chosen = _checked(options), _tuple(optimizers)
    if not chosen:
        raise RuntimeError(NO_OPTIMIZER)
    state = _from_rank0(optim_state_dict, options)
    if not state:
        raise RuntimeError(NO_OPTIMIZER_STATE.format(found=state))
    parts = [
        optimizer_state_dict_for(model, optimizer, state, StateDictOptions(strict=options.strict))
        for optimizer in chosen
    ]
    for optimizer, part in zip(chosen, parts, strict=True):
        optimizer.load_state_dict(part)


def optimizer_state_dict_for(
    model: Module, optimizer: Optimizer, state: Mapping[str, Any], options: StateDictOptions
) -> dict[str, Any]:
    """What `optimizer.load_state_dict` takes, of what `get_optimizer_state_dict` gave for all. RuntimeError as
    `set_optimizer_state_dict`. Not in PyTorch."""
    return _part(optimizer, _parameters(model), _from_rank0(state, options), options.strict)


def set_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    model_state_dict: Mapping[str, Any],
    optim_state_dict: Mapping[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """`set_optimizer_state_dict` and `set_model_state_dict`, whose result it returns."""
    chosen = _tuple(optimizers)
    if chosen:
        set_optimizer_state_dict(model, chosen, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError(NEEDS_FULL)
    return options


def _from_rank0(state: Mapping[str, Any], options: StateDictOptions) -> dict[str, Any]:
    if not options.broadcast_from_rank0:
        return dict(state)
    others = peers(None, False)
    return others.gather(dict(state) if others.rank == 0 else None)[0]


def _initialize(optimizer: Optimizer) -> None:
    """Let an optimizer make its state, by a step with gradients of zero and a learning rate of zero."""
    parameters = list(chain.from_iterable(group["params"] for group in optimizer.param_groups))
    if optimizer.state or any(parameter.grad is not None for parameter in parameters):
        return
    for parameter in parameters:
        if parameter.requires_grad:
            parameter.grad = zeros_like(parameter)
    rates = [group.get("lr") for group in optimizer.param_groups]
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if rate is not None:
            group["lr"] = zeros(()) if isinstance(rate, Tensor) else 0.0
    optimizer.step()
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if rate is not None:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def _part(optimizer: Optimizer, names: dict[int, str], state: dict[str, Any], strict: bool) -> dict[str, Any]:
    """The state dict of one optimizer, whose parameters are numbered, of that of all, where they have names."""
    flat = "param_groups" not in state
    saved_groups = [] if flat else [set(group["params"]) for group in state["param_groups"]]
    found: dict[str, Any] = {"state": {}, "param_groups": []}
    number = 0
    for group in optimizer.param_groups:
        own = [names[id(parameter)] for parameter in group["params"]]
        if flat:
            settings = {key: state.get(f"param_groups.{own[0]}.{key}", value) for key, value in group.items()}
        else:
            fitting = [k for k, members in enumerate(saved_groups) if members.intersection(own)]
            settings = {**group, **(state["param_groups"][fitting[0]] if fitting else {})}
        found["param_groups"].append({**settings, "params": list(range(number, number + len(own)))})
        for k, (name, parameter) in enumerate(zip(own, group["params"], strict=True), number):
            saved = _unflat(state, f"state.{name}.") if flat else state["state"].get(name)
            if saved is not None and saved != {}:
                found["state"][k] = saved
            elif parameter.requires_grad and strict and _has_states(state):
                raise RuntimeError(MISSING_STATE.format(name=name))
        number += len(own)
    return found


def _has_states(state: dict[str, Any]) -> bool:
    return bool(state["state"]) if "state" in state else any(name.startswith("state.") for name in state)


def _flat(state: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def visit(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, member in value.items():
                visit(f"{prefix}.{key}", member)
        elif isinstance(value, (Tensor, int, float)):
            found[prefix] = value
        else:
            raise NotImplementedError(NO_FLATTENING.format(kind=type(value)))

    for name, value in state["state"].items():
        visit(f"state.{name}", value)
    for group in state["param_groups"]:
        for name in group["params"]:
            found |= {f"param_groups.{name}.{key}": value for key, value in group.items() if key != "params"}
    return found


def _unflat(state: dict[str, Any], prefix: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in state.items():
        if name.startswith(prefix):
            *outer, last = name[len(prefix) :].split(".")
            holder = found
            for key in outer:
                holder = holder.setdefault(key, {})
            holder[last] = value
    return found
