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
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar, overload

from eager.core.grad_mode import enable_grad, no_grad
from eager.core.interpreter import current_interpreter, on_arrays
from eager.core.sparse import hooks, is_sparse
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.nn.hooks import HookTable, RemovableHandle
from eager.nn.module import clear_gradient, typename
from eager.optim.checks import CHECKS
from eager.optim.compatibility import required
from eager.optim.state import Parts, Remembered, StateInUse, fitted, parts, within
from graphc.ops.dtypes import FLOAT32
from graphc.scoped import variable

Group = dict[str, Any]
ParamsT: TypeAlias = Iterable[Tensor] | Iterable[Group] | Iterable[tuple[str, Tensor]]
R = TypeVar("R")
STEP_HOOKS = frozenset(("step_pre", "step_post"))
EVERY_OPTIMIZER: dict[str, HookTable] = {}  # the hooks on the steps of all optimizers, by kind
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
    _foreach_records = False  # whether steps by `foreach` may be differentiated
    _sparse_remedy = ""  # what PyTorch's error says then
    _opt_called = False  # whether a step has been made: learning rate schedules ask for it
    _tables: Mapping[str, HookTable] = MappingProxyType({})  # of those that do not call `__init__`, as wrappers do

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
        current_interpreter().begun(self)
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
        missing = {name: value for name, value in self.defaults.items() if name not in param_group}
        if (name := next((name for name, value in missing.items() if value is required), None)) is not None:
            raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
        self.param_groups.append({**param_group, "params": params, **named, **missing})

    def _update(self, group: Group) -> None:
        """Update the parameters of one group from their gradients."""
        for parameter in group["params"]:
            grad = parameter.grad
            if grad is None:
                continue
            grad, remembered = E.neg(grad) if group.get("maximize") else grad, self.state[parameter]
            if parameter._d.dtype is not FLOAT32 and parameter._dtype().kind == "c":
                parameter, grad = parts(parameter), parts(grad)
                remembered = Parts(remembered, tuple(parameter._d.shape))
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
            interpreter = current_interpreter()
            if interpreter.keeps_inside(self):
                with variable(within, True):
                    return self._hooked_step(closure)
            interpreter.on_interrupt(self._remembered().put_back)
        return self._hooked_step(closure)

    def _hooked_step(self, closure: Callable[[], Any] | None) -> Any:
        if EVERY_OPTIMIZER or (self._tables and self._tables.keys() & STEP_HOOKS):
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
                if group.get("differentiable") and group.get("foreach") and not self._foreach_records:
                    raise AssertionError("_foreach ops don't support autograd")
                self._update(group)
        if not on_arrays():  # the settings are Python values like any other; the state may be made on the way
            what = f"whether {type(self).__name__} has the same state tensors"
            self._guard(StateInUse(self), True, what)
        return loss

    def _guard(self, getter: Callable[[], Any], value: Any, what: str) -> None:
        """See `Interpreter.guard`: of what this optimizer keeps, if it is there before a call."""
        if not within.get():
            current_interpreter().guard(getter, value, what)

    def _refuse_sparse(self, group: Group) -> None:
        if any(p.grad is not None and is_sparse(p.grad) for p in group["params"]):
            name = "Adam" if self._sparse_remedy else type(self).__name__  # AdamW, too
            raise RuntimeError(f"{name} does not support sparse gradients{self._sparse_remedy}")

    def _run_step(self, arguments: tuple[Any, ...], keywords: dict[str, Any], step: Callable[..., Any]) -> Any:
        """`step(*arguments, **keywords)` with the hooks before and after it; the first argument is the optimizer."""
        for hook in (*_of_all("step_pre"), *self._hooks("step_pre")):
            changed = hook(self, arguments, keywords)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    name = f"<function {type(self).__name__}.step at {id(step):#x}>"
                    raise RuntimeError(
                        f"{name} must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                    )
                arguments, keywords = changed
        result = step(*arguments, **keywords)
        for hook in (*self._hooks("step_post"), *_of_all("step_post")):
            hook(self, arguments, keywords)
        return result

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of the parameters: to None, or to zeros."""
        for group in self.param_groups:
            for parameter in group["params"]:
                clear_gradient(parameter, set_to_none)

    def _as_pytorch_has_it(self, state: Any) -> Any:
        """`state`, what `pickle` keeps of the optimizer, as one of PyTorch has it: without hooks."""
        return {name: value for name, value in state.items() if name != "_tables"} if isinstance(state, dict) else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what `pickle` has kept of an optimizer, of PyTorch or from here."""
        self.__dict__.update(state)
        self.__dict__.setdefault("_tables", {})

    def _patch_step_function(self) -> None:
        """Does nothing: hooks on steps need no preparation. Optimizers of libraries call it."""

    def _hooks(self, kind: str) -> list[Callable[..., Any]]:
        return list(self._tables.get(kind, {}).values())

    def _register(self, kind: str, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        return self.__dict__.setdefault("_tables", {}).setdefault(kind, HookTable()).register(hook, prepend)

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
            state[number if parameter is None else parameter] = fitted("", values, parameter)
        settings = [copy.deepcopy({k: v for k, v in other.items() if k != "params"}) for other in saved]
        self.state = state  # nothing has been changed if something of it is missing
        for group, other in zip(self.param_groups, settings, strict=True):
            kept = {name: group[name] for name in ("params", "param_names") if name in group}
            group.clear()
            group.update(kept | other)
        for hook in self._hooks("load_state_dict_post"):
            hook(self)

    def _remembered(self) -> Remembered:
        return Remembered(self.state, {p: dict(held) for p, held in self.state.items()})

    def _parameters(self) -> Iterable[Tensor]:
        return (p for group in self.param_groups for p in group["params"])

    def __repr__(self) -> str:
        blocks = []
        for i, group in enumerate(self.param_groups):
            lines = [f"    {name}: {group[name]}\n" for name in sorted(group) if name != "params"]
            blocks.append(f"Parameter Group {i}\n{''.join(lines)}")
        return f"{type(self).__name__} (\n" + "\n".join(blocks) + ")"


def _of_all(kind: str) -> list[Callable[..., Any]]:
    return list(EVERY_OPTIMIZER.get(kind, {}).values())


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before each step of every optimizer; a result other than None replaces them.

    As `torch.optim.optimizer.register_optimizer_step_pre_hook`.
    """
    return EVERY_OPTIMIZER.setdefault("step_pre", HookTable()).register(hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after each step of every optimizer."""
    return EVERY_OPTIMIZER.setdefault("step_post", HookTable()).register(hook)


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
        if EVERY_OPTIMIZER or self._tables.keys() & STEP_HOOKS:
            return self._run_step((self, *arguments), keywords, step)
        return step(self, *arguments, **keywords)

    return wrapped
