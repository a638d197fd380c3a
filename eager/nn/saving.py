"""The state of modules: `state_dict`, and `load_state_dict`, which reports all differences at once before it copies."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from eager.core.grad_mode import no_grad
from eager.core.meta import NO_DATA, is_meta
from eager.core.parameter import Parameter
from eager.core.tensor import Tensor
from eager.engine.inplace import assign as write
from eager.engine.language import E
from eager.nn.hooks import HookTable, RemovableHandle, calls, hooks_of, marked
from eager.nn.parameter import is_lazy

EXTRA_STATE = "_extra_state"
NO_EXTRA_STATE = (
    "Reached a code path in Module.{}() that should never be called. Please file an issue at "
    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
)
NO_OP = (
    "for {}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is a "
    "no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their corresponding key in "
    "the module instead of copying them in place?)"
)
POST_HOOK = (
    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, if "
    "incompatible_keys need to be modified, it should be done inplace."
)

Copies = list[Callable[[], None]]
_copies: list[Copies] = []  # of the loads in progress: what is to be done if nothing is wrong


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict` could not match."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    __str__ = __repr__


class Saved:
    """The part of Module that saves and loads."""

    _version: int = 1
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks = HookTable()
    _state_dict_pre_hooks = HookTable()
    _load_state_dict_post_hooks = HookTable()
    _load_state_dict_pre_hooks = HookTable()

    def _own_state(self) -> dict[str, dict[str, Any]]:
        """name -> the table it is in, for parameters and persistent buffers."""
        return {
            name: table
            for table in (self._parameters, self._buffers)
            for name, value in table.items()
            if value is not None and name not in self._non_persistent_buffers_set
        }

    def get_extra_state(self) -> Any:
        """What a subclass wants saved besides parameters and buffers."""
        raise RuntimeError(NO_EXTRA_STATE.format("get_extra_state"))

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` gave."""
        raise RuntimeError(NO_EXTRA_STATE.format("set_extra_state"))

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        for name, table in self._own_state().items():
            value = table[name]
            destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not Saved.get_extra_state:
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Parameters and persistent buffers by dotted name, sharing memory; detached unless `keep_vars`."""
        given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
        found = given.get("destination", destination)
        prefix, keep_vars = given.get("prefix", prefix), given.get("keep_vars", keep_vars)
        if found is None:
            found = OrderedDict()
            found._metadata = OrderedDict()  # type: ignore[attr-defined]
        metadata = {"version": self._version}
        if hasattr(found, "_metadata"):
            found._metadata[prefix[:-1]] = metadata
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(found, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(destination=found, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in calls(self._state_dict_hooks):
            changed = hook.function(self, found, prefix, metadata)
            if hook.with_kwargs and changed is not None:  # of those that PyTorch has made public
                raise RuntimeError("state_dict post-hook must return None")
            found = found if changed is None else changed
        return found

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Take this module's own part of `state_dict`, and note what is wrong with it."""
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = self._own_state()
        for name, table in own.items():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            given, problems = state_dict[key], _mismatch(key, table[name], state_dict[key], assign)
            error_msgs.extend(problems)
            if not problems:
                _later(lambda table=table, name=name, given=given: _place(table, name, given, assign))
        extra = prefix + EXTRA_STATE
        if type(self).set_extra_state is not Saved.set_extra_state:
            if extra in state_dict:
                _later(lambda: self.set_extra_state(state_dict[extra]))
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    first, dot, _ = key[len(prefix) :].partition(".")
                    if (dot and first not in self._modules) or (not dot and first not in own):
                        unexpected_keys.append(key)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy values into parameters and buffers, or with `assign` put the given tensors in their place.

        Raises RuntimeError listing keys that are missing or unexpected (if `strict`) and sizes that differ; then
        nothing has been changed.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        values = OrderedDict(state_dict)
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        after: list[tuple[Callable[..., Any], Any]] = []
        result = IncompatibleKeys(missing, unexpected)

        def visit(module: Any, prefix: str) -> None:
            local = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
            if assign:
                local["assign_to_params_buffers"] = True
            arguments = (values, prefix, local, True, missing, unexpected, errors)
            for hook in calls(module._load_state_dict_pre_hooks):
                hook.function(*((module, *arguments) if hook.with_kwargs else arguments))
            module._load_from_state_dict(*arguments)
            for name, child in module._modules.items():
                if child is not None:
                    visit(child, f"{prefix}{name}.")
            after.extend((hook, module) for hook in module._load_state_dict_post_hooks.values())

        with _collecting() as copies:
            visit(self, "")
        if after and not errors:  # a hook sees what has been loaded, and may decide that nothing is missing
            _carry_out(copies)
            for hook, module in after:
                if hook(module, result) is not None:
                    raise AssertionError(POST_HOOK)
        if strict:
            if unexpected:
                errors.insert(0, f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
            if missing:
                errors.insert(0, f"Missing key(s) in state_dict: {_quoted(missing)}. ")
        if errors:
            lines = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}")
        _carry_out(copies)
        return result

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after this module's state has been collected."""
        return hooks_of(self, "_state_dict_hooks").register(hook, with_kwargs=True)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """As `register_state_dict_post_hook`; a result other than None takes the place of the state."""
        return hooks_of(self, "_state_dict_hooks").register(hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before this module's state is collected."""
        return hooks_of(self, "_state_dict_pre_hooks").register(hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)` before loading."""
        return hooks_of(self, "_load_state_dict_pre_hooks").register(hook, with_kwargs=True)

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> Any:
        return hooks_of(self, "_load_state_dict_pre_hooks").register(hook, with_kwargs=with_module)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after loading."""
        return hooks_of(self, "_load_state_dict_post_hooks").register(hook)

    def _as_pytorch_has_it(self, state: Any) -> Any:
        """`state`, what `pickle` keeps of the module, with its hooks as a module of PyTorch has them."""
        return in_pytorch_form(self, state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what `pickle` has kept of a module, of PyTorch or from here."""
        self.__dict__.update(from_pytorch_form(state))
        self.__dict__.setdefault("_non_persistent_buffers_set", set())


@contextmanager
def _collecting() -> Any:
    copies: Copies = []
    _copies.append(copies)
    try:
        yield copies
    finally:
        _copies.pop()


def _carry_out(copies: Copies) -> None:
    """Do what is to be done, once."""
    with no_grad():
        while copies:
            copies.pop(0)()


def _later(copy: Callable[[], None]) -> None:
    """Do `copy` when all of the state dict has been found right; at once outside `load_state_dict`."""
    if _copies:
        _copies[-1].append(copy)
        return
    with no_grad():
        copy()


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)


def _mismatch(key: str, current: Tensor, given: Any, assign: bool) -> list[str]:
    if not isinstance(given, Tensor):
        return [
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
            f"but received {type(given)}"
        ]
    if is_lazy(current):
        return []
    if is_meta(given) and not (assign or is_meta(current)):
        return [
            f'While copying the parameter named "{key}", whose dimensions in the model are {current.shape} and whose '
            f"dimensions in the checkpoint are {given.shape}, an exception occurred : ({NO_DATA!r},)."
        ]
    if is_meta(current) and not (assign or is_meta(given)):
        warnings.warn(NO_OP.format(key), UserWarning, stacklevel=5)
    if given.shape != current.shape:
        return [
            f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in current "
            f"model is {current.shape}."
        ]
    return []


def _place(table: dict[str, Any], name: str, given: Tensor, assign: bool) -> None:
    current = table[name]
    if is_lazy(given):
        return
    if not assign:
        same = given._dtype() == current._dtype()
        write(current, given if same else E.cast(given, dtype=current._dtype()), "copy")
    elif isinstance(current, Parameter) and not isinstance(given, Parameter):
        table[name] = Parameter(given, current.requires_grad)
    else:
        table[name] = given


TABLES = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip
# table of PyTorch, of the hooks for which something holds -> (the table of those hooks, the field of Hook)
MARKS = {
    "_forward_hooks_with_kwargs": ("_forward_hooks", "with_kwargs"),
    "_forward_pre_hooks_with_kwargs": ("_forward_pre_hooks", "with_kwargs"),
    "_forward_hooks_always_called": ("_forward_hooks", "always_call"),
}
FULL = "_is_full_backward_hook"


def in_pytorch_form(module: Any, state: Any) -> Any:
    """`state`, what is kept of `module`, with its hooks as PyTorch has them."""
    if not isinstance(state, dict) or "_parameters" not in state:  # a user's class keeps itself in another way
        return state
    tables: dict[str, HookTable] = {name: state.get(name, HookTable()) for name in TABLES}
    made: dict[str, Any] = {name: table.functions() for name, table in tables.items()}
    for number in tables["_load_state_dict_pre_hooks"].with_kwargs & made["_load_state_dict_pre_hooks"].keys():
        # PyTorch has a class for those that take the module
        made["_load_state_dict_pre_hooks"][number] = partial(made["_load_state_dict_pre_hooks"][number], module)
    made |= {name: marked(tables[table], field) for name, (table, field) in MARKS.items()}
    return {**state, **made, FULL: True if tables["_backward_hooks"] else None}


def from_pytorch_form(state: dict[str, Any]) -> dict[str, Any]:
    """`state`, what is kept of a module of PyTorch or of one here, with its hooks as modules here have them."""
    kept = {name: value for name, value in state.items() if name not in TABLES and name not in MARKS and name != FULL}
    for name in TABLES:
        table = state.get(name)
        if isinstance(table, HookTable):
            kept[name] = table
        elif table:
            marks = {field: state.get(mark, {}) for mark, (of, field) in MARKS.items() if of == name}
            table.successor = kept[name] = HookTable(table, **marks)  # for the handles that are in the same pickle
    return kept
