"""Operations that a user declares with `torch.library.custom_op`: a function, and perhaps its gradient and its shapes.

In PyTorch the dispatcher keeps them; here each is a `Function`, so that both modes run and differentiate it. Programs
that are compiled see into the function.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, final

from eager.core.grad_mode import no_grad
from eager.core.meta import is_meta
from eager.core.tensor import Tensor
from eager.engine.function import Function

NAME = (
    'Expected `qualname` to be of the form "namespace::name", but got {name}. The qualname passed to the torch.library '
    "APIs must consist of a namespace and a name, e.g. aten::sin"
)
NO_GRADIENT = (
    "Trying to backward through {name} but no autograd formula was registered. Please use register_autograd to add one."
)
NO_NAMESPACE = "'_OpNamespace' '{namespace}' object has no attribute '{name}'"
ALIASED = (
    "{name}: The output of this custom operator (1) must not also be an input to this custom operator and (2) may not "
    "alias any inputs to this custom operator or other returns. Please instead return a clone of the offending output "
    "tensor(s) (e.g. return x.clone()) or refactor the custom operator to not return it."
)


@final
class CustomOpDef:
    """What `torch.library.custom_op` makes of a function. Call it like the function."""

    def __init__(
        self, name: str, fn: Callable[..., Any], signature: inspect.Signature | None = None,
        mutates: str | Iterable[str] = (),
    ):  # fmt: skip
        found = re.fullmatch(r"(\w+)::(\w+)", name)
        if found is None:
            raise ValueError(NAME.format(name=name))
        self._qualname, (self._namespace, self._name) = name, found.groups()
        self._init_fn = fn
        self._signature = inspect.signature(fn) if signature is None else signature
        self._mutates = (*self._signature.parameters,) if mutates == "unknown" else (*mutates,)
        self._fake: Callable[..., Any] | None = None
        self._composite: Callable[..., Any] | None = None  # made of other operations, which have gradients
        self._function = self._differentiated(None, None)
        self.default = self  # PyTorch's overload
        _known.setdefault(self._namespace, {})[self._name] = self

    def _differentiated(self, backward: Callable[..., Any] | None, setup: Callable[..., Any] | None) -> type[Function]:
        """A Function of the values of all parameters in order."""

        def forward(*args: Any) -> Any:
            positional, keywords = self._split(args)
            with no_grad():
                result = self._init_fn(*positional, **keywords)
            if any(r is a for r in (result if isinstance(result, tuple) else (result,)) for a in args if r is not None):
                raise RuntimeError(ALIASED.format(name=self._name))
            return result

        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            if setup is not None:
                positional, keywords = self._split(inputs)
                setup(ctx, positional, output, **({"keyword_only_inputs": keywords} if keywords else {}))

        def gradient(ctx: Any, *cotangents: Any) -> Any:
            if backward is None:
                raise RuntimeError(NO_GRADIENT.format(name=f"{self._namespace}.{self._name}.default"))
            found = backward(ctx, *cotangents)
            found = found if isinstance(found, tuple) else (found,)
            return (*found, *[None] * (len(self._signature.parameters) - len(found)))

        body = {"forward": forward, "setup_context": setup_context, "backward": gradient}
        name = f"GeneratedBackwardFor_{self._namespace}_{self._name}_default"
        return type(name, (Function,), {key: staticmethod(value) for key, value in body.items()})

    def _split(self, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The values of all parameters as positional ones and those that are given by name only."""
        named = [n for n, p in self._signature.parameters.items() if p.kind is p.KEYWORD_ONLY]
        at = len(values) - len(named)
        return values[:at], dict(zip(named, values[at:], strict=True))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = self._signature.bind(*args, **kwargs)
        given.apply_defaults()
        values = tuple(given.arguments.values())
        if self._fake is not None and any(isinstance(v, Tensor) and is_meta(v) for v in values):
            return self._fake(*args, **kwargs)
        if self._composite is not None:
            return self._composite(*given.args, **given.kwargs)
        return self._function.apply(*values)

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Give the gradient: `setup_context(ctx, inputs, output)` saves, `backward(ctx, *cotangents)` returns one for
        each input, None for those that have none."""
        self._function = self._differentiated(backward, setup_context)

    def register_composite(self, fn: Callable[..., Any], /) -> None:
        """Give a function that is made of operations with gradients: it is called as it is."""
        self._composite = fn

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Give what meta tensors are made into: shapes and dtypes. As a decorator."""
        self._fake = fn
        return fn

    def register_kernel(
        self, device_types: str | Iterable[str] | None, fn: Callable[..., Any] | None = None, /
    ) -> Callable[..., Any]:
        """Give the function for the CPU; those for other types of devices are never run. As a decorator, too."""
        if fn is None:
            return lambda fn: self.register_kernel(device_types, fn)
        types = (device_types,) if isinstance(device_types, str) else device_types
        if types is None or "cpu" in types:
            self._init_fn = fn
        return fn

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"


_known: dict[str, dict[str, Any]] = {}


def fill(namespace: str, known: dict[str, Any]) -> None:
    """Let a namespace have what `known` has, or makes when it is asked."""
    known.update(_known.get(namespace, {}))
    _known[namespace] = known


_unloaded: set[str] = set()  # namespaces of libraries that are compiled for PyTorch


@final
class _Namespace:
    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        try:
            return _known[self._name][name]
        except KeyError:
            raise AttributeError(NO_NAMESPACE.format(namespace=self._name, name=name)) from None

    def __dir__(self) -> list[str]:
        return [*_known.get(self._name, ())]


@final
class Operations:
    """`torch.ops`: operations of `torch.library` by namespace; in `aten`, the functions of `torch`."""

    def __getattr__(self, name: str) -> _Namespace:
        if name.startswith("_"):  # which no namespace does; tools ask any object for marks of their own
            raise AttributeError(f"'_Ops' object has no attribute '{name}'")
        return _Namespace(name)

    def load_library(self, path: str) -> NoReturn:
        """Raises OSError: a library is code for PyTorch's dispatcher.

        What is said of its operations (fake functions, gradients) is accepted, and means nothing. Their namespace is
        taken to be the name of the folder, as in torchvision.
        """
        _unloaded.add(os.path.basename(os.path.dirname(os.path.abspath(path))))
        raise OSError(f"Could not load this library: {path}. It is compiled for PyTorch's dispatcher.")

    def __dir__(self) -> list[str]:
        return [*_known]


ops = Operations()


def custom_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Iterable[str] = (),
    device_types: str | Iterable[str] | None = None, schema: str | None = None, tags: Any = None,
) -> Any:  # fmt: skip
    """Make an operation of a function on tensors, "namespace::name". As `torch.library.custom_op`; also a decorator.

    What the function does inside has no gradient: see `CustomOpDef.register_autograd`. The other arguments are what
    PyTorch's dispatcher needs. ValueError for a name of another form.

    >>> import eager as torch
    >>> @torch.library.custom_op("mine::scaled", mutates_args=())
    ... def scaled(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    ...     return x * by
    >>> scaled.register_autograd(lambda ctx, g: (g * ctx.by, None),
    ...                          setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]))
    >>> torch.func.grad(lambda x: torch.ops.mine.scaled(x, 3.0).sum())(torch.ones(2))
    tensor([3., 3.])
    """

    def made(fn: Callable[..., Any]) -> CustomOpDef:
        return CustomOpDef(name, fn, mutates=mutates_args)

    return made if fn is None else made(fn)


def _detached(name: str) -> CustomOpDef:
    """An operation that no name leads to."""

    def absent(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{name} is in a library that is compiled for PyTorch's dispatcher")

    namespace, _, short = name.partition("::")
    made = CustomOpDef(name, absent)
    del _known[namespace][short]
    return made


def definition(op: Any) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    namespace, _, name = str(op).partition("::")
    found = _known.get(namespace, {}).get(name)
    if found is None and namespace in _unloaded:
        return _detached(str(op))
    if found is None:
        raise RuntimeError(f"operator {op} does not exist")
    return found


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """See `CustomOpDef.register_fake`. op: "namespace::name" or a `CustomOpDef`. RuntimeError if there is none."""
    found = definition(op)
    return found.register_fake if func is None else found.register_fake(func)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None
) -> None:
    """See `CustomOpDef.register_autograd`. op: "namespace::name" or a `CustomOpDef`. RuntimeError if there is none."""
    definition(op).register_autograd(backward, setup_context=setup_context)


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """See `CustomOpDef.register_kernel`. op: "namespace::name" or a `CustomOpDef`. RuntimeError if there is none."""
    return definition(op).register_kernel(device_types, func)
