"""The functions, methods and properties that ask `__torch_function__`, made from those that do not.

Nothing is made before the first class that has a handler, or the first mode: see `eager.core.overriding`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from eager.core import homes, overriding
from eager.core.later import Later
from eager.core.missing import MissingMethod
from eager.core.overriding import Asking, AskingFunction, called, is_unhandled
from eager.core.tensor import Tensor
from eager.surface import public as tables
from eager.surface.public import every_name
from graphc.ops.operators import BINARY

# modules of public functions
NAMESPACES = ("eager", "eager.nn.functional", "eager.linalg", "eager.special", "eager.fft")
# functions of torch that ask nobody: settings, and those that make a tensor of whatever they are given
SILENT = frozenset(
    "as_tensor asarray can_cast compile cond default_generator fork_rng from_dlpack from_numpy get_default_device "
    "get_default_dtype get_rng_state initial_seed is_anomaly_check_nan_enabled is_anomaly_enabled is_grad_enabled "
    "is_inference_mode_enabled is_tensor is_warn_always_enabled load manual_seed promote_types save seed "
    "set_default_device set_default_dtype set_default_tensor_type set_flush_denormal set_grad_enabled "
    "set_num_interop_threads set_num_threads set_printoptions set_rng_state set_warn_always source tensor typename "
    "vmap while_loop".split()
)
# those of them that modes see
SEEN_BY_MODES = frozenset({"as_tensor", "asarray", "tensor"})
# attributes of Tensor that are the same of every class
NOT_ASKING = frozenset(
    "__array_function__ __array_priority__ __array_ufunc__ __class__ __dict__ __dir__ __doc__ __getattr__ __hash__ "
    "__init__ __init_subclass__ __iter__ __module__ __new__ __slots__ __str__ __torch_function__ __weakref__ "
    "as_subclass".split()
)
# the method that PyTorch tells of an operator, where that is another one
TOLD = {
    f"__{dunder}__": name
    for dunder, name in (entry.split("=") for entry in (
        "add=add iadd=add_ sub=sub isub=sub_ mul=mul imul=mul_ truediv=div itruediv=div_ rtruediv=__rdiv__ "
        "ifloordiv=floor_divide_ mod=remainder imod=remainder_ matmul=matmul ne=ne lt=lt le=le gt=gt ge=ge neg=neg "
        "abs=abs pos=positive radd=add rmul=mul rand=bitwise_and ror=bitwise_or rxor=bitwise_xor"
    ).split())
}  # fmt: skip
REFLECTED = {f"__r{dunder}__": f"__{dunder}__" for dunder in BINARY}
OURS = ("eager", "graphc", "compare")


class Public(AskingFunction):
    """A public function that asks the modes, and the classes of its arguments. It equals the function itself."""

    def __init__(self, function: Callable[..., Any], seen_by_classes: bool = True):
        functools.update_wrapper(self, function)
        self.seen_by_classes = seen_by_classes

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function: Callable[..., Any] = self.__wrapped__  # type: ignore[attr-defined]
        if self.seen_by_classes or overriding.local.modes:
            return called(self, function, args, kwargs)
        return function(*args, **kwargs)

    @property
    def __kwdefaults__(self) -> Any:  # libraries ask it what a function takes
        return self.__wrapped__.__kwdefaults__  # type: ignore[attr-defined]

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __eq__(self, other: object) -> bool:
        return self is other or self.__wrapped__ is overriding.own(other)  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self.__wrapped__)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return repr(self.__wrapped__)  # type: ignore[attr-defined]

    def __reduce__(self) -> Any:
        name: str = self.__qualname__  # type: ignore[attr-defined]
        if getattr(sys.modules[self.__module__], name, None) is self:
            return name
        return _again, (self.__wrapped__,)  # type: ignore[attr-defined]


def _again(function: Callable[..., Any]) -> Any:
    """The public function that was pickled, which asks if anybody is to be asked here."""
    return Public(function) if asking else function


asking = False
_lasting = False  # whether a class takes part, so that they ask from now on
_wanting = 0  # how many blocks want them to ask
CO_VARARGS = 4  # of `inspect`, which is slow to import


def public(name: str, value: Any) -> Any:
    """torch.<name>, asking if anybody is to be asked."""
    if not asking or (name in SILENT and name not in SEEN_BY_MODES) or not isinstance(value, types.FunctionType):
        return value
    known = _public_of(value)
    if known is None:
        known = value._asking = Public(value, name not in SILENT)  # type: ignore[attr-defined]
    return known


def _public_of(function: types.FunctionType) -> Public | None:
    """The one function that asks in the place of `function`, if there has been any: users compare by identity."""
    known = vars(function).get("_asking")
    return known if known is not None and known.__wrapped__ is function else None  # not one that `wraps` has copied


def offered_now(function: Any) -> Any:
    """What torch offers at this point in the place of `function`, one of its functions or what asks in its place."""
    function = overriding.own(function)
    return (asking and type(function) is types.FunctionType and _public_of(function)) or function


def ask() -> None:
    """Let public functions ask from now on."""
    global _lasting
    _lasting = True
    _begin()


def take_part() -> None:
    """Someone who is to be asked exists: let public functions ask from now on, unless a block has them ask anyway."""
    if not _wanting:
        ask()


@contextlib.contextmanager
def asked(every: bool = False) -> Iterator[None]:
    """Context: public functions ask, those that have been imported as well; and `every` method of tensors, or only
    those that may be given tensors of another class. Afterwards they do as before, unless a class takes part by then.
    """
    global _wanting
    _wanting += 1
    try:
        _begin()
        if every:
            _replace(lambda own: True)
        yield
    finally:
        _wanting -= 1
        if _lasting or _wanting:
            _replace(_takes_others)
        else:
            _end()


def _begin() -> None:
    """Fill `Asking`, and put asking functions in the place of the public ones, wherever they have been imported."""
    global asking
    if asking:
        return
    asking = True
    _fill()
    overriding.unconverted.update(_getter(name) for name in ("_base", "grad"))
    replaced: dict[int, Any] = {}
    for namespace, offered in namespaces():
        for name in offered:
            value = getattr(namespace, name)
            asked = public(name, value)
            if asked is not value:
                replaced[id(value)] = asked
                setattr(namespace, name, asked)
    _replace(_takes_others)
    overriding.in_use.append(True)
    _exchange(lambda value: replaced.get(id(value)) if type(value) is types.FunctionType else None)


def _end() -> None:
    """Undo `_begin`."""
    global asking
    asking = False
    overriding.in_use.clear()
    _replace(lambda own: False)
    plain: Callable[[Any], Any] = lambda value: value.__wrapped__ if type(value) is Public else None
    for namespace, _ in namespaces():
        _exchange_in(namespace, plain)
    _exchange(plain)


def _exchange(other: Callable[[Any], Any]) -> None:
    """Put `other` functions, where it gives any, into layers and the modules that have imported public ones."""
    from eager.nn.layer import Layer

    for layer in _subclasses(Layer):
        function = vars(layer).get("_function")
        if function is not None and (found := other(function.__func__)) is not None:
            layer._function = staticmethod(found)
    for module in list(sys.modules.values()):
        if isinstance(module, types.ModuleType) and homes.name_of(module).partition(".")[0] not in OURS:
            _exchange_in(module, other)


def _exchange_in(module: Any, other: Callable[[Any], Any]) -> None:
    for name, value in list(vars(module).items()):
        # by its type, not by `__class__`: a lazy object would load for it
        if (found := other(value)) is not None:
            setattr(module, name, found)


def _fill() -> None:
    """Give `Asking` what Tensor has by now: meshes and the like install attributes later."""
    for name, own in {name: own for name, own in vars(Tensor).items() if _asks(name, own)}.items():
        if name not in vars(Asking):
            setattr(Asking, name, _property(name) if _is_property(name, own) else _method(name))


def namespaces() -> Iterator[tuple[Any, Iterable[str]]]:
    """The modules of public functions, with the names that they offer; what is not yet made of torch is so later."""
    for module in map(importlib.import_module, NAMESPACES):
        if homes.name_of(module) == "eager":
            yield module, every_name() & vars(module).keys()
        else:
            yield module, [name for name in dir(module) if name[0] != "_"]
    yield importlib.import_module("eager.autograd"), ["grad"]


def _subclasses(cls: type) -> Iterator[Any]:
    for each in cls.__subclasses__():
        yield each
        yield from _subclasses(each)


def _asks(name: str, own: Any) -> bool:
    if name in NOT_ASKING or isinstance(own, (MissingMethod, staticmethod, classmethod, types.MemberDescriptorType)):
        return False
    if name[0] == "_" and not name.startswith("__") and name not in ("_base", "_is_view", "_version"):
        return False
    return callable(own) or hasattr(own, "__get__")


def _is_property(name: str, own: Any) -> bool:
    return isinstance(own, property) or name in tables.PROPERTIES


def _getter(name: str) -> Any:
    return getattr(Tensor, name).__get__


def _property(name: str) -> property:
    def accessor(kind: str) -> Callable[..., Any]:
        def asked(*args: Any) -> Any:
            function = getattr(raw(name), kind)
            return called(function, function, args, {})

        return asked

    return property(accessor("__get__"), accessor("__set__"), accessor("__delete__"))


def _method(name: str) -> Callable[..., Any]:
    told = TOLD.get(name, name)
    if name in REFLECTED:
        return _reflected(name, told, REFLECTED[name])

    operator = name in REFLECTED.values()

    def asked(*args: Any, **kwargs: Any) -> Any:
        function = raw(name)
        try:
            return called(getattr(Tensor, told), function, args, kwargs)
        except TypeError as error:
            if operator and is_unhandled(error):
                return NotImplemented
            raise

    asked.__name__ = asked.__qualname__ = name
    asked.__doc__ = f"As `torch.Tensor.{told}`, by `__torch_function__`."
    return asked


def _reflected(name: str, told: str, forward: str) -> Callable[..., Any]:
    """A reflected operator: that of another tensor is told as the forward one, whose turn it would have been."""

    def asked(self: Any, other: Any) -> Any:
        try:
            if isinstance(other, Tensor):
                return called(getattr(Tensor, TOLD.get(forward, forward)), raw(forward), (other, self), {})
            return called(getattr(Tensor, told), raw(name), (self, other), {})
        except TypeError as error:
            if is_unhandled(error):
                return NotImplemented
            raise

    asked.__name__ = asked.__qualname__ = name
    return asked


# methods of tensors of no such class
_plain: dict[str, Any] = {}  # the attributes of Tensor in whose place asking ones are


def raw(name: str) -> Any:
    """The attribute of Tensor that asks nobody."""
    own = _plain.get(name)
    if isinstance(own, Later):
        own = _plain[name] = own.resolve()
    return getattr(Tensor, name) if own is None else own


def _replace(wanted: Callable[[Any], bool]) -> None:
    """Let those methods of Tensor ask which are `wanted`, and no others."""
    for name, own in _plain.items():
        setattr(Tensor, name, own)
    _plain.clear()
    _fill()
    chosen = [(name, own) for name, own in vars(Tensor).items() if _asks(name, own) and wanted(own)]
    _plain.update((name, own) for name, own in chosen if hasattr(Tensor, name))  # else its op is gone
    for name in _plain:
        asked = vars(Asking)[name]
        if not isinstance(asked, property):
            functools.update_wrapper(asked, raw(name))  # what asks for names of arguments finds them
            asked.__name__ = asked.__qualname__ = name
        setattr(Tensor, name, asked)


def _takes_others(own: Any) -> bool:
    """Whether a method may be given tensors besides its own. Generated ones say so when they miss, at no cost."""
    code = getattr(own, "__code__", None)
    if isinstance(own, Later):
        return own.name in tables.METHODS and own.name not in REFLECTED
    if code is None or "DT" in own.__globals__ or own.__name__ in REFLECTED:
        return False
    return code.co_argcount > 1 or bool(code.co_flags & CO_VARARGS)


def told_of(name: str, function: Any = None, method: bool = True) -> Any:
    """The public method or function of that name, behind the op of it, or behind `function`."""
    of_modules = [sys.modules[each] for each in NAMESPACES if each in sys.modules]
    for namespace in [Tensor, *of_modules] if method else of_modules:
        for each in (name, name.partition("_")[2]):  # `linalg_norm` is the norm of `linalg`
            if (found := getattr(namespace, each, None)) is not None and function in (None, *_wrapped(found)):
                return found
    return name if function is None else function


def _wrapped(function: Any) -> Iterator[Any]:
    while function is not None:
        yield function
        function = getattr(function, "__wrapped__", None)


def name_of(function: Any) -> str | None:
    """PyTorch's name of a public function, a method of Tensor, or the `__get__` of a property."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, property):
        found = next((name for name in vars(Asking) if raw(name) is owner), None)
        return None if found is None else f"torch.Tensor.{found}.{function.__name__}"
    name = getattr(function, "__name__", "")
    if getattr(Tensor, name, None) is function and not isinstance(function, Public):
        return f"torch.Tensor.{name}"
    for namespace, _ in namespaces():
        if (own := vars(namespace).get(name)) is not None and own == function:
            return f"{namespace.__name__.replace('eager', 'torch')}.{name}"
    return None


def install() -> None:
    """Be called before the first class that has a handler."""
    overriding.public_of.append(told_of)
    overriding.resolve_name[0] = lambda function: name_of(function) or getattr(function, "__name__", str(function))
    overriding.on_first_class.append(ask)
