"""Operations that are declared by a schema, and get their functions one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from eager.autograd.custom_ops import NAME, CustomOpDef, definition, ops
from eager.library.schemas import signature_of

KINDS = ("DEF", "IMPL", "FRAGMENT")
NO_KERNEL = (
    "Could not run '{}' with arguments from the 'CPU' backend. Remedy: torch.library.impl(\"{}\", \"cpu\") registers a "
    "function."
)
TWICE = (
    "Tried to register an operator ({}) with the same name and overload name multiple times. Each overload's schema "
    "should only be registered with a single call to def()."
)
# what a key says of the function: that it runs without gradients, has those of what it calls, or gives shapes
RUNS = ("CPU", "CompositeExplicitAutograd")
DIFFERENTIABLE = ("CompositeImplicitAutograd", "Autograd", "AutogradCPU")
SHAPES = ("Meta",)


class Library:
    """Operations of the namespace `ns`. As `torch.library.Library`.

    kind          "DEF" and "FRAGMENT" declare operations, "IMPL" gives functions for those of others
    dispatch_key  of `impl`, where it gets none

    ValueError for another kind, and for names of PyTorch's own ("prim").

    >>> import eager as torch
    >>> library = torch.library.Library("shop", "DEF")
    >>> name = library.define("twice(Tensor x) -> Tensor")
    >>> library.impl(name, lambda x: x * 2, "CPU")
    >>> torch.ops.shop.twice(torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in KINDS:
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "prim" or (ns == "aten" and kind != "IMPL"):
            raise ValueError(f"{ns} is a reserved namespace")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Declare "name(Tensor x) -> Tensor". Returns the name. RuntimeError if it is declared, or for another form."""
        name, signature = signature_of(schema)
        if name in dir(getattr(ops, self.ns)):
            raise RuntimeError(TWICE.format(f"{self.ns}::{schema}"))

        def absent(*args: Any, **kwargs: Any) -> NoReturn:
            raise NotImplementedError(NO_KERNEL.format(*[f"{self.ns}::{name}"] * 2))

        CustomOpDef(f"{self.ns}::{name}", absent, signature)
        return name

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", **options: Any) -> None:
        """Give the function of an operation for a key: "CPU", "Meta", "CompositeImplicitAutograd", ...

        Those of other devices are never called. RuntimeError for an operation that nobody has declared.
        """
        key = dispatch_key or self.dispatch_key or DIFFERENTIABLE[0]
        name = op_name._qualname if isinstance(op_name, CustomOpDef) else str(op_name)
        found = definition(name if "::" in name else f"{self.ns}::{name}")
        if key in RUNS:
            found.register_kernel("cpu", fn)
        elif key in DIFFERENTIABLE:
            found.register_composite(fn)
        elif key in SHAPES:
            found.register_fake(fn)


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Declare the operation "namespace::name" by "(Tensor x) -> Tensor". As `torch.library.define`.

    ValueError for a name of another form, RuntimeError for another schema.
    """
    namespace, separator, name = qualname.partition("::")
    if not separator:
        raise ValueError(NAME.format(name=qualname))
    (lib or Library(namespace, "FRAGMENT")).define(name + schema, tags=tags)


def impl(
    qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]] | None:
    """Give the function of "namespace::name" for types of devices: "cpu", "default", ... As `torch.library.impl`.

    A decorator without `func`. The older form `impl(library, name, key)` is one, too. RuntimeError for an operation
    that nobody has declared.
    """
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func or ""

        def older(fn: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, fn, key)
            return fn

        return older
    found = definition(qualname)
    kinds: Iterable[str] = (types,) if isinstance(types, str) else types

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        if {"default", "cpu", "CPU", *RUNS} & set(kinds):
            found.register_kernel("cpu", fn)
        return fn

    if func is None:
        return register
    register(func)
    return None
