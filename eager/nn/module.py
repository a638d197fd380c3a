"""Module: what has parameters, buffers and submodules, and is called. As `torch.nn.Module`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from eager.core import homes
from eager.core.parameter import Parameter
from eager.core.tensor import Tensor
from eager.functional.checking import is_builtin_there
from eager.nn.calling import Called, EveryModule
from eager.nn.conversion import Converted
from eager.nn.parameter import Buffer
from eager.nn.saving import Saved
from graphc.ops.rules import torch_name


def typename(value: Any) -> str:
    """The type of `value` as PyTorch's messages name it: "torch.FloatTensor", "str", "package.Class"."""
    if isinstance(value, Tensor):
        return f"torch.{torch_name(value._dtype())}Tensor"
    kind = value if isinstance(value, type) else type(value)
    module, name = homes.pytorch_name(kind) if homes.is_ours(kind.__module__) else (kind.__module__, kind.__qualname__)
    return name if module == "builtins" else f"{module}.{name}"


MOST_ROWS = 60  # layers that a notebook shows


class Module(Called, Saved, Converted):
    """Base of everything with parameters. A subclass calls `super().__init__()` and defines `forward`."""

    training: bool
    dump_patches = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for name, value in [*vars(cls).items()]:
            if is_builtin_there(value):  # `activation = torch.relu` is no method of the class
                setattr(cls, name, staticmethod(value))

    def __init__(self) -> None:
        fields = self.__dict__
        fields["training"] = True
        fields["_parameters"] = {}
        fields["_buffers"] = {}
        fields["_non_persistent_buffers_set"] = set()
        fields["_modules"] = {}

    if TYPE_CHECKING:
        forward: Any  # so that a class may have it with any arguments, or compiled
    else:

        def forward(self, *inputs: Any, **keywords: Any) -> Any:
            """What a call computes. Raises NotImplementedError unless the subclass defines it."""
            raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__
        for table in ("_parameters", "_modules", "_buffers"):
            found = fields.get(table)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        if isinstance(value, Buffer):
            for table in ("_parameters", "_modules"):
                fields.get(table, {}).pop(name, None)
            self.register_buffer(name, value, value.persistent)
            return
        kind = self._table_for(name, value)
        if kind is None:
            object.__setattr__(self, name, value)
            return
        for other in ("_parameters", "_modules", "_buffers"):
            if other != kind:
                fields[other].pop(name, None)
        fields.pop(name, None)
        if kind == "_parameters":
            self.register_parameter(name, value)
        else:
            self._enter(kind, name, value)
        if kind != "_buffers":
            fields["_non_persistent_buffers_set"].discard(name)

    def _table_for(self, name: str, value: Any) -> str | None:
        """The table that an assignment goes to, or None for a plain attribute. Raises PyTorch's errors."""
        fields = self.__dict__
        registered = "_parameters" in fields
        if isinstance(value, Parameter):
            if not registered:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            return "_parameters"
        if registered and name in fields["_parameters"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            return "_parameters"
        if isinstance(value, Module):
            if not registered:
                raise AttributeError("cannot assign module before Module.__init__() call")
            return "_modules"
        if registered and name in fields["_modules"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            return "_modules"
        if registered and name in fields["_buffers"]:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            return "_buffers"
        return None

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*object.__dir__(self), *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    def _enter(self, table: str, name: str, value: Any) -> None:
        """Put `value` into a table under `name`, or what the hooks on all modules make of it."""
        for hook in list(EveryModule.registered[table].values()):
            changed = hook(self, name, value)
            value = value if changed is None else changed
        self.__dict__[table][name] = value

    def _check_name(self, what: str, name: Any, table: Mapping[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {typename(name)}")
        if hasattr(self, name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."{f", got: {name}" if what == "module" else ""}')
        if not name:
            raise KeyError(f'{what} name can\'t be empty string ""')

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under `name`; None reserves the name."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param is not None and not param.is_leaf:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._enter("_parameters", name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but not trained; unless `persistent`, it is left out of `state_dict`."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._enter("_buffers", name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule under `name`."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._enter("_modules", name, module)

    register_module = add_module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below, with dotted names, each once."""
        seen = set() if memo is None else memo
        if self in seen:
            return
        if remove_duplicate:
            seen.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                yield from child.named_modules(seen, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all below."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules with their names, each once."""
        seen: set[Module] = set()
        for name, child in self._modules.items():
            if child is not None and child not in seen:
                seen.add(child)
                yield name, child

    def children(self) -> Iterator[Module]:
        """The direct submodules."""
        return (child for _, child in self.named_children())

    def _named_members(
        self, table: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        owners = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, owner in owners:
            for name, member in getattr(owner, table).items():
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with dotted names, each once."""
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, for an optimizer."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with dotted names, each once."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The submodule at the dotted path `target`. Raises AttributeError if there is none."""
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put `module` at the dotted path `target`, whose parent must exist; itself too with `strict`."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if strict and not hasattr(owner, name):
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        setattr(owner, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at the dotted path `target`. Raises AttributeError if there is none."""
        return self._member(target, "_parameters", "an nn.Parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at the dotted path `target`. Raises AttributeError if there is none."""
        return self._member(target, "_buffers", "a buffer")

    def _member(self, target: str, table: str, what: str) -> Any:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        if name not in owner.__dict__[table]:
            raise AttributeError(f"`{name}` is not {what}")
        return owner.__dict__[table][name]

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` on every submodule, then on this module. Returns the module."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Let calls run `forward` under `torch.compile`, which the arguments are for. Names of parameters stay."""
        from eager.compiling.compiled import compile

        self.forward = compile(self.forward, *args, **kwargs)  # type: ignore[method-assign]

    def train(self, mode: bool = True) -> Self:
        """Set training mode, here and below. Returns the module."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)  # which a class may have overridden
        return self

    def eval(self) -> Self:
        """Set evaluation mode: dropout off, running statistics used. Returns the module."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Change whether operations on the parameters are recorded. Returns the module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of the parameters: to None, or to zeros."""
        for parameter in self.parameters():
            clear_gradient(parameter, set_to_none)

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses, besides the submodules."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        children = [f"({name}): {indented(repr(child))}" for name, child in self._modules.items()]
        if not children and "\n" not in extra:
            return f"{self._get_name()}({extra})"
        lines = [*(extra.split("\n") if extra else ()), *children]
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    def _repr_html_(self) -> str:
        """What a notebook shows: a row for each layer, with its parameters."""
        from graphc.display import Remark, Table
        from graphc.display.as_html import fragment

        rows: list[tuple[str, str, str, str]] = []
        for name, module in self.named_modules():
            own = dict(module.named_parameters(recurse=False))
            shapes = ", ".join(f"{key} {list(p.shape)}" for key, p in own.items())
            layer = f"{module._get_name()}({' '.join(module.extra_repr().split())})"
            rows.append((name, layer, shapes, f"{sum(p.numel() for p in own.values()):,}" if own else ""))
        more = [(f"and {len(rows) - MOST_ROWS:,} more", "", "", "")] if len(rows) > MOST_ROWS else []
        total = f"{sum(p.numel() for p in self.parameters()):,} parameters"
        return fragment(
            [Table(rows[:MOST_ROWS] + more, ("name", "layer", "parameters", "count")), Remark(total, "note")]
        )


def indented(text: str) -> str:
    """`text` with every line but the first moved right by two."""
    return text.replace("\n", "\n  ")


def clear_gradient(t: Tensor, set_to_none: bool) -> None:
    """Set `t.grad` to None, or to zeros, where there is one."""
    if set_to_none:
        t.grad = None  # unasked: a compiled step does not depend on whether there is one
    elif t.grad is not None:
        t.grad.requires_grad_(False)
        t.grad.zero_()
