"""Parameters that are functions of others. As `torch.nn.utils.parametrize`.

A parametrized tensor becomes a property of its module, whose class is replaced by a subclass that has the property:
each time that the tensor is read, it is computed from the originals in `module.parametrizations`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from eager.core.grad_mode import no_grad
from eager.core.parameter import Parameter
from eager.core.tensor import Tensor
from eager.nn.module import Module
from eager.nn.modules.container import ModuleDict, ModuleList

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip

NOT_SAVED = (
    "Serialization of parametrized modules is only supported through state_dict(). See:\n"
    "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
    "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
)
MAY_NOT_CHANGE = (
    "Registering a parametrization may not change the {} of the tensor, unless {}`unsafe` flag is enabled.\n{}: {}\n"
    "{}: {}"
)
INVERSE_CHANGES = (
    "The tensor returned by parametrization.right_inverse must have the same {0} as module.{1}, unless the `unsafe` "
    "flag is enabled.\nmodule.{1}.{0}: {2}\nreturned {0}: {3}"
)
ONE_OF_SEVERAL = (
    "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of "
    "tensors."
)

_cached: dict[tuple[int, str], Tensor] | None = None  # (id of the module, name) -> the tensor, inside `cached()`


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once, the first time that it is read in this context. Contexts may be nested."""
    global _cached
    outer = _cached
    if outer is None:
        _cached = {}
    try:
        yield
    finally:
        _cached = outer


def _register(module: Module, name: str, value: Any) -> None:
    (module.register_parameter if isinstance(value, Parameter) else module.register_buffer)(name, value)


def _named(value: Any) -> str:
    return type(value).__name__


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in the order in which they are applied, and what they are applied to.

    That is the tensor `original`, or `original0`, `original1`, ... if the `right_inverse` of the first gives several.
    ValueError if a parametrization gives no tensor, or one of another shape or dtype, unless `unsafe`.
    """

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False):
        if not len(modules):
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new = _inverted(self, original)
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1
        if isinstance(new, Tensor):
            if new.dtype != dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            with no_grad():
                original.set_(new)
            _register(self, "original", original)
        elif isinstance(new, Sequence):
            self.ntensors = len(new)
            for i, part in enumerate(new):
                self._add(i, part, original)
        else:
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got " + _named(new)
            )
        if not unsafe:
            result = self()
            if not isinstance(result, Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {_named(result)}.")
            for what, before in (("dtype", dtype), ("shape", shape)):
                if (after := getattr(result, what)) != before:
                    names = f"unparametrized {what}", before, f"parametrized {what}", after
                    raise ValueError(MAY_NOT_CHANGE.format(what, "", *names))

    def _add(self, i: int, part: Any, original: Any) -> None:
        if not isinstance(part, Tensor):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                f"{i} of the sequence with type {_named(part)}."
            )
        if isinstance(original, Parameter):
            part = Parameter(part, original.requires_grad)
        part.requires_grad_(original.requires_grad)
        _register(self, f"original{i}", part)

    def originals(self) -> list[Any]:
        """What the first parametrization is given."""
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Any) -> None:
        """Set the originals so that the parametrized tensor becomes `value`.

        RuntimeError for a parametrization without a `right_inverse`, ValueError if that gives something else than the
        originals are.
        """
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {_named(module)} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {_named(value)}")
            elif not isinstance(value, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {_named(value)}.")
            elif len(value) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of "
                    f"length {len(value)}."
                )
            pairs = list(zip(self.originals(), [value] if self.is_tensor else value, strict=True))
            for i, (original, new) in enumerate(pairs):
                self._check(i, original, new)
            for original, new in pairs:
                original.set_(new)

    def _check(self, i: int, original: Any, new: Any) -> None:
        if not isinstance(new, Tensor):
            raise ValueError(
                "'right_inverse' must return a sequence of tensors or reference-type opaques. Got element "
                f"{i} of type {_named(new)}."
            )
        if new.dtype != original.dtype:
            tensor, name = ("The tensor", "original") if self.is_tensor else (f"Tensor {i}", f"original{i}")
            raise ValueError(
                f"{tensor} returned by `right_inverse` has dtype {new.dtype} while `{name}` has dtype {original.dtype}"
            )

    def forward(self) -> Any:
        """The parametrized tensor."""
        first, *others = self
        result = first(*self.originals())
        for module in others:
            result = module(result)
        return result


def _inverted(parametrizations: Any, value: Any) -> Any:
    """`value` through the inverses of those parametrizations that have one."""
    with no_grad():
        for module in reversed(list(parametrizations)):
            if hasattr(module, "right_inverse"):
                try:
                    value = module.right_inverse(value)
                except NotImplementedError:  # then the value is taken for the original
                    continue
    return value


def _inject_class(module: Module) -> None:
    """Give `module` a class of its own, which properties can be added to."""
    cls = type(module)

    def deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        replica = memo[id(self)] = object.__new__(type(self))
        replica.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return replica

    def getstate(self: Any) -> NoReturn:
        raise RuntimeError(NOT_SAVED)

    members: dict[str, Any] = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module: Module, name: str) -> None:
    def get(self: Any) -> Any:
        if _cached is None:
            return self.parametrizations[name]()
        key = id(self), name
        if key not in _cached:
            _cached[key] = self.parametrizations[name]()
        return _cached[key]

    def set_(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, set_))


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Any:  # fmt: skip
    """Let the parameter or buffer `tensor_name` of `module` be computed by the module `parametrization`.

    If that has a method `right_inverse`, the tensor keeps its value, and can be assigned to; else its value becomes the
    original. ValueError if there is no such tensor, or if shape or dtype would change, unless `unsafe`.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_next(getattr(module, tensor_name), tensor_name, parametrization)
        chain: Any = module.parametrizations[tensor_name]
        chain.append(parametrization)
        chain.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        chain = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = chain
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def _check_next(current: Any, name: str, parametrization: Any) -> None:
    """ValueError unless `parametrization`, and its inverse, keep the shape and dtype of `current`."""
    result = parametrization(current)
    if not isinstance(result, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {_named(result)}.")
    for what in ("dtype", "shape"):
        before, after = getattr(current, what), getattr(result, what)
        if before != after:
            names = f"module.{name}.{what}", before, f"parametrization(module.{name}).{what}", after
            raise ValueError(MAY_NOT_CHANGE.format(what, "the ", *names))
    if hasattr(parametrization, "right_inverse"):
        try:
            back = parametrization.right_inverse(result)
        except NotImplementedError:
            return
        if not isinstance(back, Tensor):
            raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {_named(back)}")
        for what in ("dtype", "shape"):
            before, after = getattr(current, what), getattr(back, what)
            if before != after:
                raise ValueError(INVERSE_CHANGES.format(what, name, before, after))


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether the tensor of that name is parametrized; without a name, whether any is."""
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Let the tensor be a parameter or buffer again: with its value now, or with that of the original.

    ValueError if it is not parametrized, or if the original is asked for and there are several.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    chain: Any = module.parametrizations[tensor_name]
    if chain.is_tensor:
        original = chain.original
        if leave_parametrized:
            with no_grad():
                original.set_(getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(ONE_OF_SEVERAL)
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of `module` before its first parametrization."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Any, to_module: Any, tensor_name: str | None = None) -> Any:
    """Give `to_module`, the result, the parametrizations and originals of `from_module`: of one tensor, or all."""
    if not is_parametrized(from_module):
        return to_module
    for name in [*from_module.parametrizations] if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source: Any = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        for key, value in {**source._parameters, **source._buffers}.items():
            setattr(to_module.parametrizations[name], key, value)
    return to_module
