"""Optimizer: parameter groups, per-parameter state, and the frame of a step.

A step under a trace runs the same code: Python numbers become constants of the program, so each group's are guarded;
state tensors are made outside the trace, so that the program reads and writes them.
"""

from __future__ import annotations

import copy
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from operator import is_
from typing import Any, NamedTuple, TypeAlias, TypeVar, final, overload

import numpy as np

from eager.core.grad_mode import enable_grad, no_grad
from eager.core.interpreter import IMMEDIATE, current_interpreter, interpreting, on_arrays
from eager.core.placed import data_of, filled, is_elsewhere, is_placed
from eager.core.placed import like as laid_like
from eager.core.sparse import hooks, is_sparse
from eager.core.tensor import Tensor
from eager.engine.crossing import transferred
from eager.engine.language import E
from eager.functional.complexes import view_as_complex, view_as_real
from eager.nn.hooks import Hook, HookTable, RemovableHandle
from eager.nn.module import clear_gradient, typename
from graphc.ops.dtypes import FLOAT32, FLOAT64, default_float

Group = dict[str, Any]
ParamsT: TypeAlias = Iterable[Tensor] | Iterable[Group] | Iterable[tuple[str, Tensor]]
R = TypeVar("R")
STEP_HOOKS = frozenset(("step_pre", "step_post"))
DUPLICATES = (
    "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; see "
    "github.com/pytorch/pytorch/issues/40967 for more information"
)


class Optimizer:
    """Base of the optimizers. A subclass passes its default settings and defines `_update_one`, or `step` itself.

    Those here declare `_settings` and `_checks`, and begin with `self._begin(locals())`. `foreach`, `fused` and
    `capturable` choose between implementations in PyTorch and change nothing here.

    param_groups: dicts of "params" and settings; state: for each parameter, what is remembered between steps.
    """

    _settings = ""  # the arguments of `__init__` that are settings of the groups, in the order that they have there
    _checks = ""  # those that are checked, in that order
    _takes_sparse = False  # whether gradients may be sparse
    _sparse_remedy = ""  # what PyTorch's error says then
    _opt_called = False  # whether a step has been made: learning rate schedules ask for it
    _tables: dict[str, HookTable]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.step)

    def __init__(self, params: ParamsT, defaults: dict[str, Any]):
        self._tables = {}
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + typename(params)
            )
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def _begin(self, arguments: dict[str, Any]) -> None:
        """Begin with the params and settings among `arguments`, the local variables of a subclass's `__init__`."""
        arguments = self._checked(arguments)
        settings = {name: arguments[name] for name in self._settings.split()}
        Optimizer.__init__(self, arguments["params"], settings)
        if settings.get("fused"):
            if settings["differentiable"]:
                raise RuntimeError("`fused` does not support `differentiable`")
            if settings["foreach"]:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")

    def _checked(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """`arguments` in the form in which they are kept. Raises PyTorch's ValueError for one that is not valid."""
        for name in self._checks.split():
            CHECKS[name](arguments[name])
        return arguments

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters with settings of their own; what they leave out is taken from the defaults.

        Raises TypeError for what is no dict of leaf Tensors, ValueError for a non-leaf or a parameter of another group.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        params = [params] if isinstance(params, Tensor) else list(params)
        params, named = _split_names(params)
        for parameter in params:
            if not isinstance(parameter, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {typename(parameter)}")
            if not (
                parameter.is_leaf or self.defaults.get("differentiable") or getattr(parameter, "retains_grad", False)
            ):
                raise ValueError("can't optimize a non-leaf Tensor")
        ids = {id(p) for p in params}
        if len(ids) != len(params):
            warnings.warn(DUPLICATES, stacklevel=3)
        if any(("param_names" in group) != bool(named) for group in self.param_groups):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with' if named else 'without'} names to the optimizer"
            )
        if any(id(p) in ids for group in self.param_groups for p in group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append({**param_group, "params": params, **named, **self._missing(param_group)})

    def _missing(self, group: Group) -> dict[str, Any]:
        return {name: value for name, value in self.defaults.items() if name not in group}

    def _update(self, group: Group) -> None:
        """Update the parameters of one group from their gradients."""
        for parameter in group["params"]:
            grad = parameter.grad
            if grad is None:
                continue
            grad, remembered = E.neg(grad) if group.get("maximize") else grad, self.state[parameter]
            if parameter._d.dtype is not FLOAT32 and parameter._dtype().kind == "c":
                parameter, grad = parts(parameter), parts(grad)
                remembered = _Parts(remembered, tuple(parameter._d.shape))
            self._update_one(parameter, grad, group, remembered)

    def _update_one(self, parameter: Any, grad: Tensor, group: Group, remembered: dict[str, Any]) -> None:
        """Update one parameter from its gradient, or from minus its gradient to maximize.

        remembered: its state. Of complex numbers all these are the parts, real numbers along a last dim.
        """
        raise NotImplementedError

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], R]) -> R: ...

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient. `closure` recomputes the loss, which is returned."""
        self._opt_called = True
        if not on_arrays():
            current_interpreter().on_interrupt(self._remembered().put_back)
        if self._tables and self._tables.keys() & STEP_HOOKS:
            return self._run_step((self,) if closure is None else (self, closure), {}, type(self)._step)
        return self._step(closure)

    def _step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with enable_grad() if self.defaults.get("differentiable") else no_grad():
            for group in self.param_groups:
                if hooks and not self._takes_sparse:
                    self._refuse_sparse(group)
                self._update(group)
        if not on_arrays():  # the settings are Python values like any other; the state may be made on the way
            what = f"whether {type(self).__name__} has the same state tensors"
            current_interpreter().guard(StateInUse(self), True, what)
        return loss

    def _refuse_sparse(self, group: Group) -> None:
        if any(p.grad is not None and is_sparse(p.grad) for p in group["params"]):
            name = "Adam" if self._sparse_remedy else type(self).__name__  # AdamW, too
            raise RuntimeError(f"{name} does not support sparse gradients{self._sparse_remedy}")

    def _run_step(self, arguments: tuple[Any, ...], keywords: dict[str, Any], step: Callable[..., Any]) -> Any:
        """`step(*arguments, **keywords)` with the hooks before and after it; the first argument is the optimizer."""
        for hook in self._hooks("step_pre"):
            changed = hook(self, arguments, keywords)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                    )
                arguments, keywords = changed
        result = step(*arguments, **keywords)
        for hook in self._hooks("step_post"):
            hook(self, arguments, keywords)
        return result

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of the parameters: to None, or to zeros."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none:
                    parameter.grad = None
                else:
                    clear_gradient(parameter, False)

    # --- pickles

    def _as_pytorch_has_it(self, state: Any) -> Any:
        """`state`, what `pickle` keeps of the optimizer, as one of PyTorch has it: without hooks."""
        return {name: value for name, value in state.items() if name != "_tables"} if isinstance(state, dict) else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what `pickle` has kept of an optimizer, of PyTorch or from here."""
        self.__dict__.update(state)
        self.__dict__.setdefault("_tables", {})

    # --- hooks

    def _hooks(self, kind: str) -> list[Callable[..., Any]]:
        return [hook.function for hook in self._tables.get(kind, {}).values()]

    def _register(self, kind: str, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        return self._tables.setdefault(kind, HookTable()).register(Hook(hook), prepend)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; what it returns, if not None, replaces the two."""
        return self._register("step_pre", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return self._register("step_post", hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`."""
        return self._register("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` on what `state_dict` returns; a result other than None replaces it."""
        return self._register("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; what it returns, if not None, is loaded instead."""
        return self._register("load_state_dict_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after loading."""
        return self._register("load_state_dict_post", hook, prepend)

    # --- state

    def state_dict(self) -> dict[str, Any]:
        """The state by parameter number, and the groups with numbers for parameters. Tensors share memory."""
        for hook in self._hooks("state_dict_pre"):
            hook(self)
        numbers = {id(p): i for i, p in enumerate(self._parameters())}
        groups = [
            {**{k: v for k, v in group.items() if k != "params"}, "params": [numbers[id(p)] for p in group["params"]]}
            for group in self.param_groups
        ]
        found = {"state": {numbers.get(id(p), p): s for p, s in self.state.items()}, "param_groups": groups}
        for hook in self._hooks("state_dict_post"):
            changed = hook(self, found)
            found = found if changed is None else changed
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over state and settings that `state_dict` returned. Raises ValueError if the groups differ in size."""
        state_dict = dict(state_dict)
        for hook in self._hooks("load_state_dict_pre"):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(s["params"]) != len(g["params"]) for s, g in zip(saved, self.param_groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        parameter_of = dict(zip([i for s in saved for i in s["params"]], self._parameters(), strict=True))
        state: Any = defaultdict(dict)
        for number, values in state_dict["state"].items():
            parameter = parameter_of.get(number)
            state[number if parameter is None else parameter] = _fitted("", values, parameter)
        settings = [copy.deepcopy({k: v for k, v in other.items() if k != "params"}) for other in saved]
        self.state = state  # nothing has been changed if something of it is missing
        for group, other in zip(self.param_groups, settings, strict=True):
            kept = {name: group[name] for name in ("params", "param_names") if name in group}
            group.clear()
            group.update(kept | other)
        for hook in self._hooks("load_state_dict_post"):
            hook(self)

    def _remembered(self) -> _Remembered:
        return _Remembered(self.state, {p: dict(held) for p, held in self.state.items()})

    def _parameters(self) -> Iterable[Tensor]:
        return (p for group in self.param_groups for p in group["params"])

    def __repr__(self) -> str:
        blocks = []
        for i, group in enumerate(self.param_groups):
            lines = [f"    {name}: {group[name]}\n" for name in sorted(group) if name != "params"]
            blocks.append(f"Parameter Group {i}\n{''.join(lines)}")
        return f"{type(self).__name__} (\n" + "\n".join(blocks) + ")"


class _Remembered(NamedTuple):
    """What the state of an optimizer holds, apart from the values of its tensors."""

    state: dict[Tensor, dict[str, Any]]
    held: dict[Tensor, dict[str, Any]]

    def put_back(self) -> None:
        """Drop what the state has got since."""
        for parameter in [p for p in self.state if p not in self.held]:
            self.state.pop(parameter, None)
        for parameter, held in self.held.items():
            self.state[parameter].clear()
            self.state[parameter].update(held)


@final
class StateInUse:
    """Asks whether the tensors that a step has used are those in the state: all of it can be replaced, or dropped."""

    def __init__(self, optimizer: Optimizer):
        self._optimizer = optimizer
        self._state = optimizer.state  # load_state_dict makes another
        self._all = list(self._state.values())
        self._used = [
            (p, held, {name: value for name, value in held.items() if isinstance(value, Tensor)})
            for p in optimizer._parameters()
            if p.grad is not None and (held := self._state.get(p)) is not None
        ]

    def __call__(self) -> bool:
        now = self._optimizer.state
        return now is self._state and all(
            now.get(p) is held and all(held.get(name) is value for name, value in tensors.items())
            for p, held, tensors in self._used
        )

    def quick(self, name: Callable[[Any], str]) -> str:
        """See `eager.core.interpreter.Interpreter.guard`."""
        state, each = name(self._state), name(self._all)
        return " or ".join((
            f"{name(self._optimizer)}.state is not {state} or len({state}) != {len(self._all)}",
            f"not all({name(map)}({name(is_)}, {state}.values(), {each}))",
            *(f"{name(held)}[{n!r}] is not {name(t)}" for _, held, tensors in self._used for n, t in tensors.items()),
        ))  # fmt: skip


class _Parts(dict[str, Any]):
    """The state of a complex parameter as a step sees it: real tensors of `shape`, over the complex ones of `kept`."""

    def __init__(self, kept: dict[str, Any], shape: tuple[int, ...]):
        super().__init__({name: parts(value) for name, value in kept.items()})
        self._kept, self._shape = kept, shape

    def __setitem__(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor) and tuple(value._d.shape) == self._shape:  # new: no count of steps
            with interpreting(IMMEDIATE):
                value = view_as_complex(value).clone()
        self._kept[name] = value
        super().__setitem__(name, parts(value))

    def update(self, **values: Any) -> None:  # type: ignore[override]
        for name, value in values.items():
            self[name] = value


def parts(value: Any) -> Any:
    """A complex tensor as real numbers along a new last dim, a view; anything else as it is."""
    return view_as_real(value) if isinstance(value, Tensor) and value._dtype().kind == "c" else value


def learning_rate(group: Group) -> Any:
    """The learning rate, as a Python number (a traced one under a trace)."""
    lr = group["lr"]
    return lr.item() if isinstance(lr, Tensor) else lr


def zeros(shape: tuple[int, ...], dtype: np.dtype, value: float = 0) -> Tensor:
    """A new state tensor, real even under a trace; full of `value`."""
    with interpreting(IMMEDIATE):
        return E.full(shape=shape, value=value, dtype=dtype)


def like(parameter: Tensor, value: float = 0) -> Tensor:
    """A new state tensor of the shape and dtype of `parameter`."""
    if is_elsewhere(parameter):
        with interpreting(IMMEDIATE):
            return Tensor._wrap(filled(parameter._d.shape, parameter._dtype(), value, parameter._d))
    return zeros(parameter._d.shape, parameter._dtype(), value)


def counter(value: float = 0) -> Tensor:
    """A new 0-d state tensor, such as the number of steps: of float64 where that is the default, else of float32."""
    return zeros((), FLOAT64 if default_float() == FLOAT64 else FLOAT32, value)


def wide(number: Tensor) -> Tensor:
    """A 0-d state tensor in float64: formulas of the step number lose too many digits in float32."""
    return E.cast(number, dtype=FLOAT64)


def decayed(grad: Tensor, parameter: Any, group: Group, lr: Any = None) -> Tensor:
    """The gradient of the loss plus weight_decay / 2 * |parameter|^2.

    lr: given by optimizers in which the decay may be decoupled: then it shrinks the parameter instead.
    """
    decay = group["weight_decay"]
    if decay == 0:
        return grad
    if lr is None or not group["decoupled_weight_decay"]:
        return E.add(grad, E.mul(parameter, decay))
    parameter.mul_(1 - lr * decay)
    return grad


def approach(average: Any, value: Tensor, share: float) -> None:
    """Move a running average by a share of the way to `value`."""
    average.add_(E.mul(E.sub(value, average), share))


def average_squares(square: Any, value: Tensor, kept: float) -> None:
    """Move a running mean of squares to that of `value`, of which it gets the share 1 - kept."""
    square.mul_(kept)
    square.add_(E.mul(E.mul(value, value), 1 - kept))


def kept(value: Tensor, group: Group) -> Tensor:
    """State as an operand that gradients may need later: a copy if the step itself is recorded."""
    return E.clone(value) if group["differentiable"] else value


def _fitted(name: Any, value: Any, parameter: Tensor | None) -> Any:
    """Loaded state: tensors are copied, in the parameter's dtype unless they count steps."""
    if isinstance(value, Tensor):
        if is_sparse(value):
            return E.clone(value)
        if parameter is not None and name != "step" and parameter._dtype().kind == "f":
            cast = E.cast(value.detach(), dtype=parameter._dtype()).clone()
            if is_placed(parameter) and cast._d.shape == parameter._d.shape:
                return Tensor._wrap(laid_like(data_of(cast), parameter._d))
            return transferred(cast, parameter.device)
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _fitted(key, each, parameter) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_fitted(None, each, parameter) for each in value)
    return copy.deepcopy(value)


def _split_names(params: list[Any]) -> tuple[list[Any], dict[str, list[str]]]:
    """The parameters of a list like `named_parameters()`, and their names as an entry of the group."""
    names = [p[0] for p in params if isinstance(p, tuple)]
    if names and len(names) != len(params):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return ([p[1] for p in params], {"param_names": names}) if names else (params, {})


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """The `step` of a subclass, with the hooks that were registered; it is noted that it was called."""

    @wraps(step)
    def wrapped(self: Optimizer, *arguments: Any, **keywords: Any) -> Any:
        self._opt_called = True
        if self._tables.keys() & STEP_HOOKS:
            return self._run_step((self, *arguments), keywords, step)
        return step(self, *arguments, **keywords)

    return wrapped


def one_element(lr: Any) -> None:
    """Raise PyTorch's ValueError for a learning rate that is a tensor of several elements."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def should_be(what: str, bound: str, value: Any, valid: Any) -> None:
    """Raise the ValueError of PyTorch's newer optimizers unless `valid`."""
    if not valid:
        raise ValueError(f"{what} should be {bound} but is: {value}")


def _check_rate(lr: Any) -> None:
    one_element(lr)
    rate = lr.item() if isinstance(lr, Tensor) else lr
    _check("learning rate", rate, rate >= 0.0)


def _check_betas(betas: tuple[float, float]) -> None:
    for i in (0, 1):
        _check(f"beta parameter at index {i}", betas[i], 0.0 <= betas[i] < 1.0)


def _check(what: str, value: Any, valid: Any) -> None:
    if not valid:
        raise ValueError(f"Invalid {what}: {value}")


def _not_negative(what: str) -> Callable[[Any], None]:
    return lambda value: _check(what, value, value >= 0.0)


# name of a setting -> raises PyTorch's ValueError for a value that is not valid
CHECKS: dict[str, Callable[[Any], None]] = {
    "lr": _check_rate,
    "betas": _check_betas,
    "rho": lambda rho: _check("rho value", rho, 0.0 <= rho <= 1.0),
    "etas": lambda etas: _check("eta values", f"{etas[0]}, {etas[1]}", 0.0 < etas[0] < 1.0 < etas[1]),
    "eps": _not_negative("epsilon value"),
    **{name: _not_negative(f"{name} value") for name in (
        "alpha", "initial_accumulator_value", "lr_decay", "momentum", "momentum_decay", "weight_decay",
    )},
}  # fmt: skip
